import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { sandboxSubject } from "../support/sandbox-subject.ts";

// The supervisor runs the blocks, as in containers and on other hosts, whose suites leave out what it decides.
describe("executor-local", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor({ describe, it, afterAll }, sandboxSubject, place());
});
