// Lets agents hand the chat to each other, and to a person outside the team. The model is a recording.
import assert from "node:assert/strict";
import { join } from "node:path";
// #region swarm
import { AssistantAgent, handoffMessage, HandoffTermination, Swarm, type Tool } from "@fenced/agentchat";
// #endregion
import { ReplayChatCompletionClient } from "@fenced/model-replay";

const file = join(import.meta.dirname, "records", "swarm.jsonl");
const modelClient = new ReplayChatCompletionClient({ file });

// #region swarm
const refund: Tool = {
  name: "refund",
  description: "Refunds the price of an order.",
  parameters: { type: "object", properties: { order: { type: "number" } }, required: ["order"] },
  execute: ({ order }) => `Order ${Number(order)} was paid back.`,
};
const support = new AssistantAgent({ name: "support", modelClient, handoffs: ["refunds"] });
const refunds = new AssistantAgent({
  name: "refunds",
  modelClient,
  tools: [refund],
  handoffs: ["user"],
  reflectOnToolUse: true,
});
const team = new Swarm({
  participants: [support, refunds],
  terminationCondition: new HandoffTermination("user"),
  maxTurns: 4,
});
const asked = await team.run({ task: "I want my money back." }); // ends: refunds hands the chat to the user
const answer = handoffMessage({ source: "user", target: "refunds", content: "It is order 7." });
const solved = await team.run({ task: answer });
// #endregion

assert.equal(asked.stopReason, '"refunds" handed the chat to "user".');
const results = solved.messages.flatMap((message) =>
  message.type === "ToolCallExecutionEvent" ? message.content.map(({ content }) => content) : [],
);
assert.deepEqual(results.slice(0, 1), ["Order 7 was paid back."]);
