import { type Component, type ComponentModel, defineComponent, type ModelMessage } from "@fenced/core";
import { checkOptions, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import {
  BaseChatCompletionContext,
  type ChatCompletionContextOptions,
  initialMessagesSchema,
} from "./chat-completion-context.ts";
import { lastExchanges, toExchanges } from "./exchanges.ts";

const configSchema = z.strictObject({
  bufferSize: wholeNumberOption({ from: 1 }),
  initialMessages: initialMessagesSchema.optional(),
});

/** Gives the model the last messages. Never splits the last tool call and its results, even if they are more than that. */
export class BufferedChatCompletionContext extends BaseChatCompletionContext {
  /** How `loadComponent` creates it. */
  static readonly component: Component<BufferedChatCompletionContext> = defineComponent({
    provider: "@fenced/agentchat:BufferedChatCompletionContext",
    componentType: "chat_completion_context",
    schema: configSchema,
    load: ({ bufferSize, ...options }) => new BufferedChatCompletionContext(bufferSize, options),
  });

  readonly #bufferSize: number;

  /**
   * @param bufferSize - maximum number of messages that the model gets.
   * @throws InvalidInputError if it is not a whole number of at least 1, or an option is unknown or wrong.
   */
  constructor(bufferSize: number, options: ChatCompletionContextOptions = {}) {
    const checked = checkOptions(configSchema, { ...options, bufferSize }, "BufferedChatCompletionContext");
    super(checked);
    this.#bufferSize = checked.bufferSize;
  }

  override dumpComponent(): ComponentModel {
    const settings = { bufferSize: this.#bufferSize, initialMessages: this.initialMessages };
    return BufferedChatCompletionContext.component.dump(settings);
  }

  protected override select(messages: readonly ModelMessage[]): ModelMessage[] {
    return lastExchanges(toExchanges(messages), this.#bufferSize).flat();
  }
}
