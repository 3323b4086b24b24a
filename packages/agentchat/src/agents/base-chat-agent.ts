import { ComponentError, type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { disposeAll } from "../common/dispose-all.ts";
import { lastItem } from "../common/last-item.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { isPiece } from "../messages/message-guards.ts";
import { watchTurn } from "../telemetry/watch-turn.ts";
import {
  type ChatAgent,
  checkTurnArguments,
  isResponse,
  isTaskResult,
  type AgentResponse,
  type RunOptions,
  runOptions,
  type TaskResult,
} from "./chat-agent.ts";
import { takeTurn } from "./take-turn.ts";
import { taskMessages } from "./task-messages.ts";
import { waitingResult, WaitingForPersonError } from "./waiting-for-person-error.ts";

/** Options of every agent. */
export interface BaseChatAgentOptions {
  /** Letters, digits, `_` and `-`; starts with a letter or `_`; at most 64 characters. Unique in a team. */
  readonly name: string;
  /** What the agent is for. */
  readonly description: string;
}

/** The schema of an agent's name. */
export const agentName: z.ZodType<string> = z
  .string()
  .regex(/^[A-Za-z_][\w-]{0,63}$/, "must be a letter or _ and then letters, digits, _ or -, at most 64 characters");

// Not strict: subclasses pass on all of their options, which they check themselves.
const agentOptions = z.object({ name: agentName, description: z.string() });

/**
 * The base class of agents: a subclass implements `onMessagesStream`, and, if it has a memory, `reset`, `saveState` and
 * `loadState`.
 *
 * @example
 * class Echo extends BaseChatAgent {
 *   override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<AgentResponse> {
 *     const content = messages.map(messageToText).join("\n");
 *     yield { chatMessage: textMessage({ source: this.name, content }), innerMessages: [] };
 *   }
 * }
 */
export abstract class BaseChatAgent implements ChatAgent {
  readonly name: string;
  readonly description: string;
  readonly #owned: AsyncDisposable[] = [];
  #turn: object | undefined;

  /** @throws InvalidInputError if the name or the description is invalid. */
  constructor(options: BaseChatAgentOptions) {
    const { name, description } = checkOptions(agentOptions, options, new.target.name);
    this.name = name;
    this.description = description;
  }

  /** Events and streaming chunks, then exactly one `AgentResponse`. */
  abstract onMessagesStream(
    messages: readonly ChatMessage[],
    options?: SignalOptions,
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void>;

  /**
   * Reads `onMessagesStream` to its `AgentResponse`.
   *
   * @throws InvalidInputError if an entry of `messages` is not a message, or an option is unknown or wrong.
   */
  async onMessages(messages: readonly ChatMessage[], options: SignalOptions = {}): Promise<AgentResponse> {
    const checked = checkTurnArguments(messages, options);
    checked.signal?.throwIfAborted();
    return lastItem(watchTurn(this, messages, checked), isResponse);
  }

  /** Reads `runStream` to its `TaskResult`. */
  async run(options: RunOptions = {}): Promise<TaskResult> {
    return lastItem(this.runStream(options), isTaskResult);
  }

  /** One turn of this agent, with the task as the only new messages. */
  runStream(options: RunOptions = {}): AsyncGenerator<AgentMessage | TaskResult, void, void> {
    const { signal, ...checked } = checkOptions(runOptions, options, "runStream");
    return leavableStream((ended) => this.#run(checked, ended), signal);
  }

  /** Does nothing unless overridden, as a subclass does that works between the items of its stream. */
  async onPause(): Promise<void> {}

  /** Does nothing unless overridden. */
  async onResume(): Promise<void> {}

  /** Forgets nothing unless overridden. */
  async reset(): Promise<void> {}

  /** Returns an empty object unless overridden. */
  async saveState(): Promise<JsonObject> {
    return {};
  }

  /** Restores nothing unless overridden. */
  async loadState(_state: JsonObject): Promise<void> {}

  /** @throws ComponentError unless overridden. */
  dumpComponent(): ComponentModel {
    throw new ComponentError(`Agent "${this.name}" cannot be dumped`, {
      remedy: `Implement dumpComponent() and a static fromConfig() in ${this.constructor.name}.`,
    });
  }

  /** Disposes of what the agent owns: only what `loadComponent` created for it. What you passed in stays yours. */
  async [Symbol.asyncDispose](): Promise<void> {
    await disposeAll(this.#owned.splice(0));
  }

  /** Disposes of `resource` together with the agent. */
  protected own(resource: AsyncDisposable): void {
    this.#owned.push(resource);
  }

  /**
   * Creates a stream for `onMessagesStream` that is aborted when its consumer leaves it, and that does not start while
   * another one is under way: two turns at a time would mix in the agent's memory.
   *
   * @param start - creates the items; its signal is aborted with `options.signal` and when the consumer leaves.
   */
  protected turn(
    messages: readonly ChatMessage[],
    options: SignalOptions,
    start: (signal: AbortSignal) => AsyncGenerator<AgentMessage | AgentResponse, void, void>,
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    const { signal } = checkTurnArguments(messages, options);
    return leavableStream((ended) => this.#takeTurn(start(ended), ended), signal);
  }

  /** @throws InvalidInputError while a turn is under way. */
  protected assertIdle(action: string): void {
    if (this.#turn === undefined) return;
    throw new InvalidInputError(`Agent "${this.name}" is taking a turn and cannot ${action} now`, {
      remedy: "Wait for the turn to end, abort it, or create a second agent with its own memory.",
    });
  }

  async *#takeTurn(
    items: AsyncGenerator<AgentMessage | AgentResponse, void, void>,
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    this.assertIdle("take another");
    signal.throwIfAborted();
    const turn = {};
    this.#turn = turn;
    try {
      for await (const item of items) {
        // The turn is over: the consumer may now save the agent or start another turn.
        if (isResponse(item)) this.#turn = undefined;
        yield item;
      }
    } finally {
      if (this.#turn === turn) this.#turn = undefined;
    }
  }

  async *#run(
    { task, outputTaskMessages = true }: RunOptions,
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage | TaskResult, void, void> {
    signal.throwIfAborted();
    const input = taskMessages(task);
    const messages: AgentMessage[] = outputTaskMessages ? [...input] : [];
    if (outputTaskMessages) yield* input;
    try {
      for await (const message of takeTurn(this, input, { signal, onAnswer: () => {} })) {
        if (!isPiece(message)) messages.push(message);
        yield message;
      }
    } catch (error) {
      if (!WaitingForPersonError.isInstance(error)) throw error;
      yield { messages, ...waitingResult([error.waitingFor]) };
      return;
    }
    yield { messages };
  }
}
