import { type Component, type ComponentModel, defineComponent, type ModelMessage } from "@fenced/core";
import {
  callbackOption,
  checkOptions,
  optionsSchema,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import type * as z from "zod";
import {
  BaseChatCompletionContext,
  type ChatCompletionContextOptions,
  initialMessagesSchema,
} from "./chat-completion-context.ts";
import { toExchanges } from "./exchanges.ts";

/** Options of `TokenLimitedChatCompletionContext`. */
export interface TokenLimitedChatCompletionContextOptions extends ChatCompletionContextOptions {
  /** Maximum tokens of the messages; the system message and the tools are not counted. */
  readonly tokenLimit: number;
  /** Counts the tokens of messages. Default: an estimate of 4 characters per token and 1,000 tokens per image. */
  readonly countTokens?: ((messages: readonly ModelMessage[]) => number | Promise<number>) | undefined;
}

const configSchema: z.ZodType<TokenLimitedChatCompletionContextOptions> = optionsSchema({
  tokenLimit: wholeNumberOption({ from: 1, unit: "tokens" }),
  countTokens: callbackOption<NonNullable<TokenLimitedChatCompletionContextOptions["countTokens"]>>().exactOptional(),
  initialMessages: initialMessagesSchema.exactOptional(),
} satisfies OptionSchemas<TokenLimitedChatCompletionContextOptions>);

const charactersPerToken = 4;
const tokensPerMessage = 4;
const tokensPerImage = 1000;

/**
 * Gives the model as much as fits: the first message (the task) and the last ones; leaves out the oldest messages after
 * the first. Always includes the very last message, or tool call with its results.
 */
export class TokenLimitedChatCompletionContext extends BaseChatCompletionContext {
  /** How `loadComponent` creates it. */
  static readonly component: Component<TokenLimitedChatCompletionContext> = defineComponent({
    provider: "@fenced/agentchat:TokenLimitedChatCompletionContext",
    componentType: "chat_completion_context",
    schema: configSchema,
    load: (config) => new TokenLimitedChatCompletionContext(config),
  });

  readonly #tokenLimit: number;
  readonly #countTokens: TokenLimitedChatCompletionContextOptions["countTokens"];

  /** @throws InvalidInputError if the limit is not a whole number of at least 1, or an option is unknown or wrong. */
  constructor(options: TokenLimitedChatCompletionContextOptions) {
    const checked = checkOptions(configSchema, options, "TokenLimitedChatCompletionContext");
    super(checked);
    this.#tokenLimit = checked.tokenLimit;
    this.#countTokens = checked.countTokens;
  }

  override dumpComponent(): ComponentModel {
    const settings = {
      tokenLimit: this.#tokenLimit,
      countTokens: this.#countTokens,
      initialMessages: this.initialMessages,
    };
    return TokenLimitedChatCompletionContext.component.dump(settings);
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

/** Estimates tokens without the model's tokenizer: one per 4 characters, 1,000 per image. */
function estimateTokens(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensPerMessage + estimateMessage(message), 0);
}

function estimateMessage(message: ModelMessage): number {
  const { content } = message;
  const thought = message.role === "assistant" ? estimateText(message.thought ?? "") : 0;
  if (typeof content === "string") return thought + estimateText(content);
  return content.reduce((sum, part) => {
    if ("type" in part && part.type === "image") return sum + tokensPerImage;
    return sum + estimateText(JSON.stringify(part));
  }, thought);
}

function estimateText(text: string): number {
  return Math.ceil(text.length / charactersPerToken);
}
