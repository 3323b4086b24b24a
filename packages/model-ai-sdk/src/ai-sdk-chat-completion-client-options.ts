import type { JsonObject, ModelInfo } from "@fenced/core";
import type { LanguageModel } from "ai";

/** Settings that go with every call, as the AI SDK names them. What is left out is the provider's default. */
export interface AISDKCallSettings {
  /** Sampling temperature; 0 is the least random. */
  readonly temperature?: number;
  /** Nucleus sampling: the share of probability that the model picks from, above 0 and at most 1. Set this or `temperature`. */
  readonly topP?: number;
  /** Tokens that one answer may have. A longer one ends with the finish reason `length`. */
  readonly maxOutputTokens?: number;
  /** Asks for the same answer to the same request, where a provider can. A whole number. */
  readonly seed?: number;
  /** Texts at which the model stops writing. */
  readonly stopSequences?: readonly string[];
  /** Settings of one provider, under its name, e.g. `{ anthropic: { thinking: { type: "enabled", budgetTokens: 4000 } } }`. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
}

/** Options of `AISDKChatCompletionClient`. */
export interface AISDKChatCompletionClientOptions extends AISDKCallSettings {
  /**
   * A model object of any AI SDK provider (`openai("gpt-4o")`, `createOpenAICompatible(...)("qwen3")`), of the
   * interface's version 2 or 3, and with `ai` 7 also 4; or a model id (`"anthropic/claude-sonnet-4.5"`), which the AI SDK's global provider
   * resolves: the AI Gateway, unless the program sets another.
   */
  readonly model: LanguageModel;
  /** Corrects what the client takes the model for: `family` is its id, `vision` is told from the id, the rest is true. */
  readonly modelInfo?: Partial<ModelInfo>;
  /** How often a call is tried again after a rate limit, a failure of the service or of the network. Default: 2. */
  readonly maxRetries?: number;
}
