import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import { abortable } from "../common/abortable.ts";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { handoffMessage, textMessage, userInputRequestedEvent } from "../messages/create-message.ts";
import { BaseChatAgent } from "./base-chat-agent.ts";
import type { Response } from "./chat-agent.ts";
import { readLine } from "./read-line.ts";
import { Turn } from "./turn.ts";

const graceMs = 1000;

/** Gets an answer from a person. */
export type InputFunc = (prompt: string, options: SignalOptions) => string | Promise<string>;

/** What a `UserProxyAgent` is made from. */
export interface UserProxyAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** What the person is for. Default: a general text. */
  readonly description?: string | undefined;
  /** Gets the answer. Default: reads a line from the terminal. */
  readonly inputFunc?: InputFunc | undefined;
}

const configSchema = z.strictObject({ name: z.string(), description: z.string().optional() });

/**
 * A person as an agent: each turn waits for an answer. A person to whom the chat was handed hands it back to the one
 * it came from.
 */
export class UserProxyAgent extends BaseChatAgent {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "agent";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #inputFunc: InputFunc | undefined;

  /** @throws InvalidInputError if the name is not one. */
  constructor({ name, description = "A person.", inputFunc }: UserProxyAgentOptions) {
    super({ name, description });
    this.#inputFunc = inputFunc;
  }

  /** Makes the agent that `dumpComponent` described; it reads from the terminal. */
  static fromConfig(config: JsonObject, context: ComponentContext): UserProxyAgent {
    return new UserProxyAgent(parseComponentConfig(configSchema, config, context.provider));
  }

  /** @throws ComponentError if there is an `inputFunc`: a function is not a setting. */
  override dumpComponent(): ComponentModel {
    const settings = { name: this.name, description: this.description, inputFunc: this.#inputFunc };
    return dumpComponentModel({ className: "UserProxyAgent", componentType: "agent", settings });
  }

  /** A `UserInputRequestedEvent`, then the answer. */
  override onMessagesStream(
    messages: readonly ChatMessage[],
    { signal }: SignalOptions = {},
  ): AsyncGenerator<AgentMessage | Response, void, void> {
    return leavableStream((ended) => this.#takeTurn(messages, ended), signal);
  }

  async *#takeTurn(
    messages: readonly ChatMessage[],
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage | Response, void, void> {
    signal.throwIfAborted();
    const turn = new Turn(this.name, signal);
    yield turn.record(userInputRequestedEvent({ source: this.name }));
    const input = (this.#inputFunc ?? readLine)(`${this.name}, your answer: `, { signal });
    const content = await abortable(input, { signal, graceMs });

    const last = messages.at(-1);
    const isMine = last?.type === "HandoffMessage" && last.target === this.name;
    const common = { source: this.name, content };
    yield turn.response(isMine ? handoffMessage({ ...common, target: last.source }) : textMessage(common));
  }
}
