import { testCodeExecutor } from "@fenced/executor-testkit";
import { connection, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { sshSubject } from "./support/ssh-subject.ts";

const subject = await sshSubject("SshCommandLineCodeExecutor");

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, subject, connection());
});
