import type { JsonObject, ModelInfo } from "@fenced/core";
import { optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import type { LanguageModel } from "ai";
import * as z from "zod";
import type { AISDKChatCompletionClientOptions } from "./ai-sdk-chat-completion-client-options.ts";

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const modelInfo: z.ZodType<Partial<ModelInfo>> = optionsSchema({
  family: z.string().exactOptional(),
  provider: z.string().exactOptional(),
  vision: z.boolean().exactOptional(),
  functionCalling: z.boolean().exactOptional(),
  structuredOutput: z.boolean().exactOptional(),
  contextWindow: wholeNumberOption({ from: 1, unit: "tokens" }).exactOptional(),
} satisfies OptionSchemas<Partial<ModelInfo>>);

const modelId = z.string().min(1);

const options = {
  model: z.custom<LanguageModel>(isModel, "must be a language model of an AI SDK provider, or a model id"),
  modelInfo: modelInfo.exactOptional(),
  maxRetries: wholeNumberOption({ from: 0 }).exactOptional(),
  temperature: z.number().exactOptional(),
  topP: z.number().exactOptional(),
  maxOutputTokens: wholeNumberOption({ from: 1, unit: "tokens" }).exactOptional(),
  seed: z.int().exactOptional(),
  stopSequences: z.array(z.string()).exactOptional(),
  providerOptions: z.record(z.string(), jsonObject).exactOptional(),
} satisfies OptionSchemas<AISDKChatCompletionClientOptions>;

/** Checks the options. */
export const clientOptions: z.ZodType<AISDKChatCompletionClientOptions> = optionsSchema(options);

/** The dumped shape of the client's options: with a model id, never a model object. */
export const clientConfigSchema: z.ZodType<AISDKChatCompletionClientOptions & { readonly model: string }> =
  z.strictObject({ ...options, model: modelId });

function isModel(model: unknown): boolean {
  if (typeof model !== "object" || model === null) return modelId.safeParse(model).success;
  return "specificationVersion" in model && "modelId" in model && "doGenerate" in model;
}
