// Streams a model's answer from an OpenAI-compatible service.
import assert from "node:assert/strict";
// #region stream
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";

await using server = await startOpenAIServer([{ text: ["Three backticks, ", "and what is between them."] }]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });

// #region stream
const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:1234/v1";
const lmStudio = createOpenAICompatible({ name: "lm-studio", baseURL, includeUsage: true });
const client = new AISDKChatCompletionClient({ model: lmStudio("qwen3-coder-30b") });

for await (const item of client.createStream([{ role: "user", content: "What is a fence?" }])) {
  if (typeof item === "string") process.stdout.write(item);
  else console.log(`\n${item.finishReason}, ${item.usage.completionTokens} tokens`);
}
// #endregion

assert.deepEqual(client.usage, { promptTokens: 10, completionTokens: 5 });
assert.equal(server.requests[0]?.body.model, "qwen3-coder-30b");
