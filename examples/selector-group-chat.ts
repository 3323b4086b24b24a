// Lets a model choose who speaks next. The model is a recording.
// needs: python3
import assert from "node:assert/strict";
import { join } from "node:path";
// #region selector
import {
  AssistantAgent,
  CodeExecutorAgent,
  MaxMessageTermination,
  SelectorGroupChat,
  TextMentionTermination,
} from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { ReplayChatCompletionClient } from "@fenced/model-replay";

const file = join(import.meta.dirname, "records", "selector-group-chat.jsonl");
const modelClient = new ReplayChatCompletionClient({ file });

// #region selector
await using codeExecutor = new LocalCommandLineCodeExecutor();
const planner = new AssistantAgent({ name: "planner", modelClient, description: "Splits a task into steps." });
const coder = new AssistantAgent({ name: "coder", modelClient, description: "Writes Python in a fence." });
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"], description: "Runs code." });
const team = new SelectorGroupChat({
  participants: [planner, coder, runner],
  modelClient,
  // After the coder, the runner speaks; the model decides everything else.
  selectorFunc: (history) => (history.at(-1)?.source === "coder" ? "runner" : undefined),
  terminationCondition: new TextMentionTermination("TERMINATE", { sources: ["planner"] }).or(
    new MaxMessageTermination(12),
  ),
});
const { messages, stopReason } = await team.run({ task: "How many leap years are between 1900 and 2000?" });
// #endregion

assert.deepEqual(
  messages.map(({ source }) => source),
  ["user", "planner", "coder", "runner", "planner"],
);
assert.match(stopReason ?? "", /planner/);
