import { testCodeExecutor } from "@fenced/executor-testkit";
import { connection, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { dockerSubject } from "./support/docker-subject.ts";
import { pythonImage } from "./support/images.ts";

describe("Docker Engine", needs("docker"), () => {
  testCodeExecutor({ describe, it, afterAll }, dockerSubject("with an image with Python", pythonImage), connection());
});
