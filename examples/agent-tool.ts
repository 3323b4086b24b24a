// An agent uses another agent and a team as tools. The models are recordings.
// needs: python3
import assert from "node:assert/strict";
import { join } from "node:path";
// #region agent-tool
import {
  AgentTool,
  AssistantAgent,
  CodeExecutorAgent,
  messageToText,
  RoundRobinGroupChat,
  TeamTool,
} from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { ReplayChatCompletionClient } from "@fenced/model-replay";

function model(name: string): ReplayChatCompletionClient {
  return new ReplayChatCompletionClient({ file: join(import.meta.dirname, "records", `agent-tool-${name}.jsonl`) });
}

// #region agent-tool
await using codeExecutor = new LocalCommandLineCodeExecutor();
const historian = new AssistantAgent({
  name: "historian",
  description: "Knows when things happened.",
  modelClient: model("historian"),
});
const calculators = new RoundRobinGroupChat({
  name: "calculate",
  description: "Computes what it is asked, with Python.",
  participants: [
    new AssistantAgent({ name: "coder", modelClient: model("coder") }),
    new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"] }),
  ],
  maxTurns: 2,
});
const writer = new AssistantAgent({
  name: "writer",
  modelClient: model("writer"),
  tools: [new AgentTool(historian), new TeamTool(calculators, { returnValueAsLastMessage: true })],
  maxToolIterations: 3,
});
const { messages } = await writer.run({ task: "On which weekday did people first land on the Moon?" });
// #endregion

assert.deepEqual(
  messages.flatMap(({ type, source }) => (type === "TextMessage" && source !== "user" ? [source] : [])),
  ["historian", "coder", "runner", "writer"],
);
assert.match(messages.slice(-1).map(messageToText).join(), /Sunday/);
