import type { ComponentModel, JsonObject, ModelMessage } from "@fenced/core";
import { checkModelMessage, checkOptions, objectOption } from "@fenced/core/options";
import * as z from "zod";
import { toJson } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import { modelMessageSchema } from "../models/model-message-schema.ts";

/** An agent's memory of the conversation, and how much of it the model gets. */
export interface ChatCompletionContext {
  /**
   * Remembers a message.
   *
   * @throws InvalidInputError if it is not a message, or one of its fields is unknown or wrong.
   */
  addMessage(message: ModelMessage): Promise<void>;
  /** The messages for the model. Never splits a tool call from its results, and has no tool result without its call. */
  getMessages(): Promise<ModelMessage[]>;
  /** Forgets everything but the initial messages. */
  reset(): Promise<void>;
  /** Returns everything it remembers, as plain JSON. */
  saveState(): Promise<JsonObject>;
  /** @throws InvalidInputError if `state` is not a saved state. */
  loadState(state: JsonObject): Promise<void>;
  /** @throws ComponentError if a setting cannot be dumped. */
  dumpComponent(): ComponentModel;
}

/** The schema of an option that takes a context; passed through, not copied. */
export const contextOption: z.ZodType<ChatCompletionContext> = objectOption<ChatCompletionContext>(
  ["addMessage", "getMessages"],
  "a chat completion context",
);

/** Options of every context. */
export interface ChatCompletionContextOptions {
  /** Messages that the conversation starts with, also after `reset`. Default: none. */
  readonly initialMessages?: readonly ModelMessage[] | undefined;
}

/** The config field of `initialMessages`. */
export const initialMessagesSchema: z.ZodType<ModelMessage[]> = z.array(modelMessageSchema);

const contextOptions = z.looseObject({ initialMessages: initialMessagesSchema.optional() });
const stateSchema = z.object({ messages: z.array(modelMessageSchema) });

/** The base class of contexts: remembers everything; a subclass chooses what the model gets. */
export abstract class BaseChatCompletionContext implements ChatCompletionContext {
  readonly #initialMessages: readonly ModelMessage[];
  #messages: ModelMessage[];

  /** @throws InvalidInputError if `initialMessages` is not a list of messages. Subclasses check their own options. */
  constructor(options: ChatCompletionContextOptions = {}) {
    const { initialMessages = [] } = checkOptions(contextOptions, options, new.target.name);
    this.#initialMessages = [...initialMessages];
    this.#messages = [...initialMessages];
  }

  /** Selects the messages that the model gets. */
  protected abstract select(messages: readonly ModelMessage[]): ModelMessage[] | Promise<ModelMessage[]>;

  abstract dumpComponent(): ComponentModel;

  /** The messages that the conversation starts with. */
  protected get initialMessages(): readonly ModelMessage[] {
    return this.#initialMessages;
  }

  async addMessage(message: ModelMessage): Promise<void> {
    checkModelMessage(message, "addMessage");
    this.#messages.push(message);
  }

  async getMessages(): Promise<ModelMessage[]> {
    return this.select(this.#messages);
  }

  async reset(): Promise<void> {
    this.#messages = [...this.#initialMessages];
  }

  async saveState(): Promise<JsonObject> {
    return { messages: toJson(this.#messages) };
  }

  async loadState(state: JsonObject): Promise<void> {
    this.#messages = parseState(stateSchema, state, "a chat completion context").messages;
  }
}
