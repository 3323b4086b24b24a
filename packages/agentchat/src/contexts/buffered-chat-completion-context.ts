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
import { lastExchanges, toExchanges } from "./exchanges.ts";

const configSchema = z.strictObject({ bufferSize: z.number(), initialMessages: initialMessagesSchema });

/** Gives the model the last messages. The last tool call with its results is given whole, even if it is longer. */
export class BufferedChatCompletionContext extends BaseChatCompletionContext {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "chat_completion_context";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #bufferSize: number;

  /**
   * @param bufferSize - how many messages the model gets at most.
   * @throws InvalidInputError if it is not a whole number of at least 1.
   */
  constructor(bufferSize: number, options: ChatCompletionContextOptions = {}) {
    super(options);
    this.#bufferSize = checkCount("bufferSize", bufferSize, 1);
  }

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): BufferedChatCompletionContext {
    const { bufferSize, ...options } = parseComponentConfig(configSchema, config, context.provider);
    return new BufferedChatCompletionContext(bufferSize, options);
  }

  override dumpComponent(): ComponentModel {
    const settings = { bufferSize: this.#bufferSize, initialMessages: this.initialMessages };
    return dumpComponentModel({
      className: "BufferedChatCompletionContext",
      componentType: "chat_completion_context",
      settings,
    });
  }

  protected override select(messages: readonly ModelMessage[]): ModelMessage[] {
    return lastExchanges(toExchanges(messages), this.#bufferSize).flat();
  }
}
