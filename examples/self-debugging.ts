// Lets an agent write code, run it, and correct it when it fails. The model is a recording.
// needs: python3
import assert from "node:assert/strict";
import { join } from "node:path";
// #region self-debugging
import { CodeExecutorAgent, messageToText } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { ReplayChatCompletionClient } from "@fenced/model-replay";

const file = join(import.meta.dirname, "records", "self-debugging.jsonl");
const modelClient = new ReplayChatCompletionClient({ file });

// #region self-debugging
await using codeExecutor = new LocalCommandLineCodeExecutor();
const solver = new CodeExecutorAgent({ name: "solver", modelClient, codeExecutor, maxRetriesOnError: 2 });
const { messages } = await solver.run({ task: "Which weekday was 29 February 1900?" });
for (const message of messages) {
  if (message.type === "CodeExecutionEvent") console.log(`attempt ${message.retryAttempt}: ${message.result.exitCode}`);
}
console.log(messages.slice(-1).map(messageToText).join());
// #endregion

assert.deepEqual(
  messages.map(({ type }) => type),
  [
    "TextMessage",
    "CodeGenerationEvent",
    "CodeExecutionEvent",
    "ThoughtEvent",
    "CodeGenerationEvent",
    "CodeExecutionEvent",
    "TextMessage",
  ],
);
assert.deepEqual(
  messages.flatMap((message) => (message.type === "CodeExecutionEvent" ? [message.result.exitCode] : [])),
  [1, 0],
);
assert.match(messages.slice(-1).map(messageToText).join(), /no 29 February in 1900/);
