import { type Component, type ComponentModel, defineComponent, type ModelMessage } from "@fenced/core";
import { checkOptions, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import {
  BaseChatCompletionContext,
  type ChatCompletionContextOptions,
  initialMessagesSchema,
} from "./chat-completion-context.ts";
import { firstExchanges, lastExchanges, toExchanges } from "./exchanges.ts";

const configSchema = z.strictObject({
  headSize: wholeNumberOption({ from: 1 }),
  tailSize: wholeNumberOption({ from: 1 }),
  initialMessages: initialMessagesSchema.optional(),
});

/** How much of both ends the model gets. */
export interface HeadAndTailChatCompletionContextOptions extends ChatCompletionContextOptions {
  /** Maximum number of messages from the start. */
  readonly headSize: number;
  /** Maximum number of messages from the end; the last tool call and its results are never split, even if they are more. */
  readonly tailSize: number;
}

/** Gives the model the beginning (the task) and the end, and says how many messages it left out between them. */
export class HeadAndTailChatCompletionContext extends BaseChatCompletionContext {
  /** How `loadComponent` creates it. */
  static readonly component: Component<HeadAndTailChatCompletionContext> = defineComponent({
    provider: "@fenced/agentchat:HeadAndTailChatCompletionContext",
    componentType: "chat_completion_context",
    schema: configSchema,
    load: (config) => new HeadAndTailChatCompletionContext(config),
  });

  readonly #headSize: number;
  readonly #tailSize: number;

  /** @throws InvalidInputError if a size is not a whole number of at least 1, or an option is unknown or wrong. */
  constructor(options: HeadAndTailChatCompletionContextOptions) {
    const checked = checkOptions(configSchema, options, "HeadAndTailChatCompletionContext");
    super(checked);
    this.#headSize = checked.headSize;
    this.#tailSize = checked.tailSize;
  }

  override dumpComponent(): ComponentModel {
    const settings = { headSize: this.#headSize, tailSize: this.#tailSize, initialMessages: this.initialMessages };
    return HeadAndTailChatCompletionContext.component.dump(settings);
  }

  protected override select(messages: readonly ModelMessage[]): ModelMessage[] {
    const exchanges = toExchanges(messages);
    const head = firstExchanges(exchanges, this.#headSize);
    const tail = lastExchanges(exchanges.slice(head.length), this.#tailSize);
    const skipped = exchanges.slice(head.length, exchanges.length - tail.length).flat().length;
    return [...head.flat(), ...skippedNote(skipped), ...tail.flat()];
  }
}

function skippedNote(count: number): ModelMessage[] {
  if (count === 0) return [];
  return [{ role: "user", source: "system", content: `(${count} earlier messages are left out here.)` }];
}
