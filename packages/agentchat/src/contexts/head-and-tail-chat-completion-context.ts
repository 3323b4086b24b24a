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
import { firstExchanges, lastExchanges, toExchanges } from "./exchanges.ts";

const configSchema = z.strictObject({
  headSize: z.number(),
  tailSize: z.number(),
  initialMessages: initialMessagesSchema,
});

/** How much of both ends the model gets. */
export interface HeadAndTailChatCompletionContextOptions extends ChatCompletionContextOptions {
  /** How many of the first messages at most. */
  readonly headSize: number;
  /** How many of the last messages at most; the last tool call with its results is given whole, even if longer. */
  readonly tailSize: number;
}

/** Gives the model the beginning (the task) and the end, and says how many messages it left out between them. */
export class HeadAndTailChatCompletionContext extends BaseChatCompletionContext {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "chat_completion_context";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #headSize: number;
  readonly #tailSize: number;

  /** @throws InvalidInputError if a size is not a whole number of at least 1. */
  constructor(options: HeadAndTailChatCompletionContextOptions) {
    super(options);
    this.#headSize = checkCount("headSize", options.headSize, 1);
    this.#tailSize = checkCount("tailSize", options.tailSize, 1);
  }

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): HeadAndTailChatCompletionContext {
    return new HeadAndTailChatCompletionContext(parseComponentConfig(configSchema, config, context.provider));
  }

  override dumpComponent(): ComponentModel {
    const settings = { headSize: this.#headSize, tailSize: this.#tailSize, initialMessages: this.initialMessages };
    return dumpComponentModel({
      className: "HeadAndTailChatCompletionContext",
      componentType: "chat_completion_context",
      settings,
    });
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
