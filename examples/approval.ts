// Asks a person before code runs.
// needs: bash
import assert from "node:assert/strict";
import { CodeExecutorAgent, messageToText } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

const shown: string[] = [];
const answers = ["yes", "no, the report must stay"];
async function askPerson(question: string): Promise<string> {
  shown.push(question);
  return answers.shift() ?? "no";
}

await using codeExecutor = new LocalCommandLineCodeExecutor();

// #region approval
const runner = new CodeExecutorAgent({
  name: "runner",
  codeExecutor,
  approvalFunc: async ({ code }) => {
    const answer = await askPerson(`${code}\n\nRun this?`);
    return { approved: answer === "yes", reason: answer };
  },
});
const written = await runner.run({ task: "```bash\necho fine > report.txt\n```" });
const refused = await runner.run({ task: "```bash\nrm report.txt\n```" });
// #endregion

const [ran = "", notRun = ""] = [written, refused].map(({ messages }) => messages.slice(-1).map(messageToText).join());
assert.equal(ran, "The code ran and printed nothing (exit code 0).");
assert.equal(notRun, "The code was not run, because it was not approved. Reason: no, the report must stay");
assert.match(shown.join(), /echo fine.*rm report/s);
assert.equal(Buffer.from(await codeExecutor.files.read("report.txt")).toString(), "fine\n");
