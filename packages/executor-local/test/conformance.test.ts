import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { hostSubject } from "./support/host-subject.ts";

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, hostSubject, place());
});
