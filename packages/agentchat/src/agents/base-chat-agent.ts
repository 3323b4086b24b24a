import { ComponentError, type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import { disposeAll } from "../common/dispose-all.ts";
import { lastItem } from "../common/last-item.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { watchTurn } from "../telemetry/watch-turn.ts";
import {
  type ChatAgent,
  isResponse,
  isTaskResult,
  type Response,
  type RunOptions,
  type Task,
  type TaskResult,
} from "./chat-agent.ts";
import { takeTurn } from "./take-turn.ts";
import { taskMessages } from "./task-messages.ts";

/** What every agent is made from. */
export interface BaseChatAgentOptions {
  /** Letters, digits, `_` and `-`; starts with a letter or `_`; at most 64 characters. Unique in a team. */
  readonly name: string;
  /** What the agent is for. */
  readonly description: string;
}

/**
 * The root of agents: a subclass writes `onMessagesStream`, and the other methods if it has a memory.
 *
 * @example
 * class Echo extends BaseChatAgent {
 *   override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<Response> {
 *     const content = messages.map(messageToText).join("\n");
 *     yield { chatMessage: textMessage({ source: this.name, content }), innerMessages: [] };
 *   }
 * }
 */
export abstract class BaseChatAgent implements ChatAgent {
  readonly name: string;
  readonly description: string;
  readonly #owned: AsyncDisposable[] = [];

  /** @throws InvalidInputError if the name is not one. */
  constructor({ name, description }: BaseChatAgentOptions) {
    this.name = checkedName(name);
    this.description = description;
  }

  /** Events and streaming chunks, then exactly one `Response`. */
  abstract onMessagesStream(
    messages: readonly ChatMessage[],
    options?: SignalOptions,
  ): AsyncGenerator<AgentMessage | Response, void, void>;

  /** Reads `onMessagesStream` to its `Response`. */
  async onMessages(messages: readonly ChatMessage[], options: SignalOptions = {}): Promise<Response> {
    options.signal?.throwIfAborted();
    return lastItem(watchTurn(this, messages, options), isResponse);
  }

  /** Reads `runStream` to its `TaskResult`. */
  async run(options: RunOptions = {}): Promise<TaskResult> {
    return lastItem(this.runStream(options), isTaskResult);
  }

  /** One turn of this agent, with the task as the only new messages. */
  runStream({ task, signal }: RunOptions = {}): AsyncGenerator<AgentMessage | TaskResult, void, void> {
    return leavableStream((ended) => this.#run(task, ended), signal);
  }

  /** Nothing to forget, unless a subclass says otherwise. */
  async reset(): Promise<void> {}

  /** An empty object, unless a subclass says otherwise. */
  async saveState(): Promise<JsonObject> {
    return {};
  }

  /** Nothing to take over, unless a subclass says otherwise. */
  async loadState(_state: JsonObject): Promise<void> {}

  /** @throws ComponentError unless a subclass says otherwise. */
  dumpComponent(): ComponentModel {
    throw new ComponentError(`Agent "${this.name}" cannot be dumped`, {
      remedy: `Let ${this.constructor.name} implement dumpComponent() and a static fromConfig().`,
    });
  }

  /** Ends what the agent owns: only what `loadComponent` made for it. What was passed in stays with who passed it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await disposeAll(this.#owned.splice(0));
  }

  /** Makes the agent end `resource` when it is disposed of. */
  protected own(resource: AsyncDisposable): void {
    this.#owned.push(resource);
  }

  async *#run(task: Task | undefined, signal: AbortSignal): AsyncGenerator<AgentMessage | TaskResult, void, void> {
    signal.throwIfAborted();
    const input = taskMessages(task);
    const messages: AgentMessage[] = [...input];
    yield* input;
    yield* takeTurn(this, input, { signal, onAnswer: (news) => messages.push(...news) });
    yield { messages };
  }
}

function checkedName(name: string): string {
  if (/^[A-Za-z_][\w-]{0,63}$/.test(name)) return name;
  throw new InvalidInputError(`"${name}" cannot be the name of an agent`, {
    remedy: "Use a letter or _ and then letters, digits, _ or -, at most 64 characters.",
  });
}
