import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { dockerSubject } from "./support/docker-subject.ts";
import { nodeImage } from "./support/images.ts";

// Without Python for a supervisor, the daemon starts each block, and another program ends it.
describe("Docker Engine", needs("docker"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    // See the README, "Limits".
    { ...dockerSubject("with an image without Python", nodeImage), closesOutput: true, keepsInputOpen: true },
    variant("standard input", "processes"),
  );
});
