import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, nightly } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { sshSubject } from "./support/ssh-subject.ts";

const subject = await sshSubject("SshCommandLineCodeExecutor, stateful,", { stateful: true });

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  // Here, there are variables to lose.
  testCodeExecutor({ describe, it, afterAll }, subject, { groups: ["session that outlives its program"] });
  testCodeExecutor({ describe, it, afterAll }, subject, {
    groups: ["submitted run of a session that outlives its program"],
    cases: nightly.skip === true ? "smoke" : "all",
  });
});
