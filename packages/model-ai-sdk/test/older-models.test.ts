import { simulateReadableStream, type LanguageModel } from "ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AISDKChatCompletionClient } from "../src/index.ts";
import { collect } from "./support.ts";

type ModelOfVersion2 = Extract<LanguageModel, { specificationVersion: "v2" }>;

const usage = { inputTokens: 7, outputTokens: 3, totalTokens: 10 };
const question = [{ role: "user" as const, content: "What is a fence?" }];
const call = { id: "1", name: "t", arguments: '{"n": 1}' };

beforeEach(() => {
  globalThis.AI_SDK_LOG_WARNINGS = false;
});

afterEach(() => {
  globalThis.AI_SDK_LOG_WARNINGS = undefined;
});

describe("a model of the interface's version 2", () => {
  it("works like a newer one", async () => {
    const toolCall = { type: "tool-call" as const, toolCallId: "1", toolName: "t", input: '{"n": 1}' };
    const model: ModelOfVersion2 = {
      specificationVersion: "v2",
      provider: "old",
      modelId: "old-model",
      supportedUrls: {},
      doGenerate: () =>
        Promise.resolve({
          content: [{ type: "text", text: "Let me see." }, toolCall],
          finishReason: "tool-calls",
          usage,
          warnings: [],
        }),
      doStream: () =>
        Promise.resolve({
          stream: simulateReadableStream({
            chunks: [
              { type: "text-start", id: "a" },
              { type: "text-delta", id: "a", delta: "Let me " },
              { type: "text-delta", id: "a", delta: "see." },
              { type: "text-end", id: "a" },
              toolCall,
              { type: "finish", finishReason: "tool-calls", usage },
            ],
          }),
        }),
    };
    const client = new AISDKChatCompletionClient({ model });
    const tools = [{ name: "t", description: "", parameters: { type: "object" } }];
    const expected = {
      content: [call],
      thought: "Let me see.",
      usage: { promptTokens: 7, completionTokens: 3 },
      finishReason: "tool-calls",
    };
    expect(await client.create(question, { tools })).toEqual(expected);
    expect(await collect(client.createStream(question, { tools }))).toEqual({
      chunks: ["Let me ", "see."],
      results: [expected],
    });
  });
});
