import {
  type ComponentContext,
  type ComponentModel,
  type JsonObject,
  type ModelMessage,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { checkCount } from "../common/check-count.ts";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import {
  BaseChatCompletionContext,
  type ChatCompletionContextOptions,
  initialMessagesSchema,
} from "./chat-completion-context.ts";
import { estimateTokens } from "./estimate-tokens.ts";
import { toExchanges } from "./exchanges.ts";

const configSchema = z.strictObject({ tokenLimit: z.number(), initialMessages: initialMessagesSchema });

/** How many tokens the model gets. */
export interface TokenLimitedChatCompletionContextOptions extends ChatCompletionContextOptions {
  /** Tokens that the messages may take; the system message and the tools come on top. */
  readonly tokenLimit: number;
  /** Counts the tokens of messages. Default: an estimate of 4 characters a token and 1,000 tokens an image. */
  readonly countTokens?: ((messages: readonly ModelMessage[]) => number | Promise<number>) | undefined;
}

/**
 * Gives the model as much as fits: the first message (the task) and the last ones. What is left out is the oldest
 * after the first. The very last message, or tool call with its results, is always given.
 */
export class TokenLimitedChatCompletionContext extends BaseChatCompletionContext {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "chat_completion_context";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #tokenLimit: number;
  readonly #countTokens: TokenLimitedChatCompletionContextOptions["countTokens"];

  /** @throws InvalidInputError if the limit is not a whole number of at least 1. */
  constructor(options: TokenLimitedChatCompletionContextOptions) {
    super(options);
    this.#tokenLimit = checkCount("tokenLimit", options.tokenLimit, 1);
    this.#countTokens = options.countTokens;
  }

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): TokenLimitedChatCompletionContext {
    return new TokenLimitedChatCompletionContext(parseComponentConfig(configSchema, config, context.provider));
  }

  override dumpComponent(): ComponentModel {
    const settings = {
      tokenLimit: this.#tokenLimit,
      countTokens: this.#countTokens,
      initialMessages: this.initialMessages,
    };
    return dumpComponentModel({
      className: "TokenLimitedChatCompletionContext",
      componentType: "chat_completion_context",
      settings,
    });
  }

  protected override async select(messages: readonly ModelMessage[]): Promise<ModelMessage[]> {
    const [first = [], ...rest] = toExchanges(messages);
    const count = this.#countTokens ?? estimateTokens;
    while (rest.length > 0) {
      const kept = [...first, ...rest.flat()];
      if ((await count(kept)) <= this.#tokenLimit) return kept;
      if (rest.length === 1) return rest.flat();
      rest.shift();
    }
    return [...first];
  }
}
