import type { ChatCompletionClient, CreateResult } from "@fenced/core";

/** A model that always gives the same answer, immediately. */
export function sayingModel(content: string): ChatCompletionClient {
  const usage = { promptTokens: 1, completionTokens: 1 };
  const result: CreateResult = { content, usage, finishReason: "stop" };
  return {
    modelInfo: { family: "saying", vision: false, functionCalling: true, structuredOutput: true },
    usage,
    create: () => Promise.resolve(result),
    async *createStream() {
      yield result;
    },
    dumpComponent: () => ({ provider: "bench:saying", componentType: "model", version: 1, config: {} }),
  };
}
