// Asks in the terminal before code runs.
// needs: python3, bash
import assert from "node:assert/strict";
// #region terminal
import { CodeExecutorAgent, terminalApproval } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { typedInTerminal } from "./support/typed-in-terminal.ts";

// Instead of a person, the example runs itself in a terminal and types the answers.
if (!process.stdin.isTTY) {
  process.exit(Number(await typedInTerminal(import.meta.filename, "or what to change] ", ["y", "keep the report"])));
}

// #region terminal
await using codeExecutor = new LocalCommandLineCodeExecutor();
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc: terminalApproval() });
// #endregion

const written = await runner.run({ task: "```bash\necho fine > report.txt\n```" });
const refused = await runner.run({ task: "```bash\nrm report.txt\n```" });
const [ran, notRun] = [written, refused].map(({ messages }) => JSON.stringify(messages.at(-1)));
assert.match(ran ?? "", /The code ran and printed nothing \(exit code 0\)\./);
assert.match(notRun ?? "", /not approved\. Reason: The user refused to run this code\. They said: keep the report/);
