// Gives an assistant an executor as a tool.
// needs: python3
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
// #region tool
import { AssistantAgent, CodeExecutorTool, messageToText } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";

const call = { language: "python", code: "from math import comb\nprint(comb(49, 6))" };
await using server = await startOpenAIServer([
  { toolCalls: [{ id: "call-1", name: "execute_code", arguments: JSON.stringify(call) }] },
  { text: "There are 13,983,816 ways." },
]);
const service = createOpenAICompatible({ name: "service", baseURL: server.baseURL });
const modelClient = new AISDKChatCompletionClient({ model: service("qwen3") });

// #region tool
await using executor = new LocalCommandLineCodeExecutor();
const analyst = new AssistantAgent({
  name: "analyst",
  modelClient,
  tools: [new CodeExecutorTool(executor)],
  reflectOnToolUse: true,
  maxToolIterations: 5,
});
const { messages } = await analyst.run({ task: "How many ways are there to choose 6 of 49?" });
console.log(messages.slice(-1).map(messageToText).join()); // There are 13,983,816 ways.
// #endregion

const executed = messages.find((message) => message.type === "ToolCallExecutionEvent");
assert.deepEqual(executed?.content, [
  { callId: "call-1", name: "execute_code", content: "13983816\n", isError: false },
]);
assert.equal(messages.slice(-1).map(messageToText).join(), "There are 13,983,816 ways.");
