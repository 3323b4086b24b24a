import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { sandboxSubject } from "../support/sandbox-subject.ts";

// The supervisor runs the blocks, as in Docker, where the whole suite runs. Here runs what a sandbox can change.
describe("executor-local", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    sandboxSubject,
    variant(
      "environment",
      "host functions",
      "abort",
      "background processes",
      "processes",
      "lost session",
      "network policy",
      "leaks",
    ),
  );
});
