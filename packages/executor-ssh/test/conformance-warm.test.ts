import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { sshSubject } from "./support/ssh-subject.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

const subject = await sshSubject(
  "SshCommandLineCodeExecutor, with warm Python,",
  { warm: {} },
  (options) => new WarmExecutor(options),
);

// All blocks run through one more program there, and Python blocks are forked from a waiting interpreter.
describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, subject, mechanism("background processes", "host functions"));
  // Otherwise the suite would prove nothing.
  afterAll(() => {
    if (WarmExecutor.sessions === 0) throw new Error("No session had a waiting interpreter.");
  });
});
