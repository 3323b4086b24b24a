import type { JsonObject, ModelInfo } from "@fenced/core";
import { type GivenOptions, optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import type { LanguageModel } from "ai";
import * as z from "zod";

/** Settings of every call, named as in the AI SDK. Settings that you leave out have the provider's default. */
export interface AISDKCallSettings {
  /** Sampling temperature; 0 is the least random. */
  readonly temperature?: number | undefined;
  /** Nucleus sampling: the probability mass that the model samples from, above 0 and at most 1. Set this or `temperature`. */
  readonly topP?: number | undefined;
  /** Maximum tokens of one answer. A longer answer is cut, with the finish reason `length`. */
  readonly maxOutputTokens?: number | undefined;
  /** Requests the same answer to the same request, if the provider supports it. A whole number. */
  readonly seed?: number | undefined;
  /** Texts at which the model stops writing. */
  readonly stopSequences?: readonly string[] | undefined;
  /** Settings of one provider, under its name, e.g. `{ anthropic: { thinking: { type: "enabled", budgetTokens: 4000 } } }`. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>> | undefined;
}

/** Options of `AISDKChatCompletionClient`. */
export interface AISDKChatCompletionClientOptions extends AISDKCallSettings {
  /**
   * A model object of any AI SDK provider (`openai("gpt-4o")`, `createOpenAICompatible(...)("qwen3")`), with version 2
   * or 3 of the model interface, or 4 with `ai` 7; or a model id (`"anthropic/claude-sonnet-4.5"`), which the AI SDK's
   * global provider resolves: the AI Gateway, unless the program sets another.
   */
  readonly model: LanguageModel;
  /**
   * Overrides what the client assumes about the model: `family` is its id, `vision` is guessed from the id, the rest is
   * true.
   */
  readonly modelInfo?: Partial<ModelInfo> | undefined;
  /** Maximum retries after a rate limit or a failure of the service or the network. Default: 2. */
  readonly maxRetries?: number | undefined;
}

/** The options once they are checked. */
export type CheckedClientOptions = GivenOptions<AISDKChatCompletionClientOptions>;

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
export const clientOptions: z.ZodType<CheckedClientOptions> = optionsSchema(options);

/** The dumped shape of the client's options: with a model id, never a model object. */
export const clientConfigSchema: z.ZodType<CheckedClientOptions & { readonly model: string }> = z.strictObject({
  ...options,
  model: modelId,
});

function isModel(model: unknown): boolean {
  if (typeof model !== "object" || model === null) return modelId.safeParse(model).success;
  return "specificationVersion" in model && "modelId" in model && "doGenerate" in model;
}
