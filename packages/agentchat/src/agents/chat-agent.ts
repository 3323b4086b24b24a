import type { ComponentModel, JsonObject } from "@fenced/core";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";

/** What an agent or a team is asked to do: text (said by `"user"`), one message, or several. */
export type Task = string | ChatMessage | readonly ChatMessage[];

/** Options of a run. */
export interface RunOptions extends SignalOptions {
  /** Default: no new task. A team goes on where it stopped, an agent answers to what it heard before. */
  readonly task?: Task | undefined;
}

/** What a run came to. */
export interface TaskResult {
  /** The task's messages, then everything that was said and done, in order. */
  readonly messages: readonly AgentMessage[];
  /** Why a team stopped. Absent for a single agent. */
  readonly stopReason?: string;
}

/** An agent's answer to the messages that it received. */
export interface Response {
  /** What the agent says. */
  readonly chatMessage: ChatMessage;
  /** What happened on the way, in order, without streaming chunks. */
  readonly innerMessages: readonly AgentMessage[];
}

/**
 * One who takes part in a chat.
 *
 * An agent has a memory: it is given only the messages that it has not received yet. A turn that fails or is aborted
 * has not happened: the caller may give it the same messages again.
 */
export interface ChatAgent extends AsyncDisposable {
  /** Unique in a team. */
  readonly name: string;
  /** What the agent is for, told to whoever chooses between agents. */
  readonly description: string;

  /**
   * Answers to new messages.
   *
   * @throws `options.signal.reason` soon after the signal was aborted, with nothing left running.
   */
  onMessages(messages: readonly ChatMessage[], options?: SignalOptions): Promise<Response>;

  /** The same as it happens: events and streaming chunks, then exactly one `Response`. Leaving early is an abort. */
  onMessagesStream(messages: readonly ChatMessage[], options?: SignalOptions): AsyncIterable<AgentMessage | Response>;

  /** Answers to a task. */
  run(options?: RunOptions): Promise<TaskResult>;

  /** The same as it happens: the task's messages, events and chunks, the answer, and last the `TaskResult`. */
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;

  /** Forgets everything that was said. */
  reset(): Promise<void>;

  /** The memory as plain JSON. */
  saveState(): Promise<JsonObject>;

  /**
   * Takes over a memory that `saveState` gave.
   *
   * @throws InvalidInputError if it is not one.
   */
  loadState(state: JsonObject): Promise<void>;

  /**
   * The settings as plain JSON, for `loadComponent`.
   *
   * @throws ComponentError if a setting cannot be dumped, such as a function.
   */
  dumpComponent(): ComponentModel;
}

/** Tells the item that ends a stream of `onMessagesStream` from the others. */
export function isResponse(item: object): item is Response {
  return "chatMessage" in item && "innerMessages" in item;
}

/** Tells the item that ends a stream of `runStream` from the others. */
export function isTaskResult(item: object): item is TaskResult {
  return "messages" in item && Array.isArray(item.messages);
}
