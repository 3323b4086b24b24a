import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { CreateResult } from "@fenced/core";
import type { OpenAIServer } from "@fenced/test-support/openai-server";
import { AISDKChatCompletionClient, type AISDKChatCompletionClientOptions } from "../src/index.ts";

export const apiKey = "sk-test-0123456789abcdef";

/** A client of the server, over HTTP through the AI SDK's OpenAI-compatible provider. */
export function clientOf(
  server: Pick<OpenAIServer, "baseURL">,
  options: Partial<AISDKChatCompletionClientOptions> = {},
): AISDKChatCompletionClient {
  const provider = createOpenAICompatible({
    name: "test",
    baseURL: server.baseURL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return new AISDKChatCompletionClient({ model: provider("test-model"), maxRetries: 0, ...options });
}

/** A stream's chunks and its result. */
export async function collect(
  stream: AsyncIterable<string | CreateResult>,
): Promise<{ chunks: string[]; results: CreateResult[] }> {
  const chunks: string[] = [];
  const results: CreateResult[] = [];
  for await (const item of stream) {
    if (typeof item === "string") chunks.push(item);
    else results.push(item);
  }
  return { chunks, results };
}

/** What a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const error: unknown = await promise.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (error instanceof Error) return error;
  throw new TypeError(`it failed with no error: ${String(error)}`);
}
