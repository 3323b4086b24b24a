import type { JsonObject } from "@fenced/core";
import * as z from "zod";
import type { AISDKChatCompletionClientOptions } from "./ai-sdk-chat-completion-client-options.ts";

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const modelInfo = z.strictObject({
  family: z.string().exactOptional(),
  provider: z.string().exactOptional(),
  vision: z.boolean().exactOptional(),
  functionCalling: z.boolean().exactOptional(),
  structuredOutput: z.boolean().exactOptional(),
  contextWindow: z.int().positive().exactOptional(),
});

/** The dumped shape of the client's options: with a model id, never a model object. */
export const clientConfigSchema: z.ZodType<AISDKChatCompletionClientOptions & { readonly model: string }> =
  z.strictObject({
    model: z.string().min(1),
    modelInfo: modelInfo.exactOptional(),
    maxRetries: z.int().nonnegative().exactOptional(),
    temperature: z.number().exactOptional(),
    topP: z.number().exactOptional(),
    maxOutputTokens: z.int().positive().exactOptional(),
    seed: z.int().exactOptional(),
    stopSequences: z.array(z.string()).exactOptional(),
    providerOptions: z.record(z.string(), jsonObject).exactOptional(),
  });
