import { type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions, optionsSchema, signalOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { checkChatMessage } from "../messages/check-message.ts";

/** What an agent or a team is asked to do: text (from `"user"`), one message, or several. */
export type Task = string | ChatMessage | readonly ChatMessage[];

/** Options of a run. */
export interface RunOptions extends SignalOptions {
  /** The task. Default: none; a team continues where it stopped, an agent answers earlier messages. */
  readonly task?: Task | undefined;
  /** Include the task's messages in the stream and in the result. Default: true. */
  readonly outputTaskMessages?: boolean | undefined;
}

/** Checks the options of a run; `taskMessages` checks the task. */
export const runOptions: z.ZodType<RunOptions> = optionsSchema({
  task: z.custom<Task>().exactOptional(),
  outputTaskMessages: z.boolean().exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<RunOptions>);

const signalOptions: z.ZodType<SignalOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<SignalOptions>);

/**
 * Checks the arguments of `onMessages` and `onMessagesStream`.
 *
 * @throws InvalidInputError if an entry of `messages` is not a message, or an option is unknown or wrong.
 */
export function checkTurnArguments(messages: readonly ChatMessage[], options: SignalOptions): SignalOptions {
  const given: unknown = messages;
  if (!Array.isArray(given)) {
    throw new InvalidInputError("onMessages: the messages are not an array", {
      remedy: 'Pass a list: [textMessage({ source: "user", content: "Hello" })].',
    });
  }
  for (const [index, message] of messages.entries()) checkChatMessage(message, `messages[${index}]`);
  return checkOptions(signalOptions, options, "onMessages");
}

/** The result of a run. */
export interface TaskResult {
  /** The task's messages, then all messages and events of the run, in order. */
  readonly messages: readonly AgentMessage[];
  /** Why a team stopped, or which answer an agent is waiting for. Absent if a single agent answered. */
  readonly stopReason?: string;
  /**
   * The answers that the run needs from people. Save the state; once there is an answer, load it, in this process or
   * another, and run again without a task. Absent if no answer is needed.
   */
  readonly waitingFor?: readonly WaitingFor[];
}

/** A person's answer or decision that a run needs to continue. */
export interface WaitingFor {
  /** The name of the agent that asks. */
  readonly source: string;
  /** What it waits for, as a sentence. */
  readonly reason: string;
}

/** An agent's answer to the messages that it received. */
export interface AgentResponse {
  /** What the agent says. */
  readonly chatMessage: ChatMessage;
  /** The messages and events before the answer, in order, without streaming chunks. */
  readonly innerMessages: readonly AgentMessage[];
}

/**
 * A participant in a chat.
 *
 * An agent remembers what it has received, so pass only new messages. A turn that fails or is aborted leaves no trace: the
 * caller may pass the same messages again. An agent takes one turn at a time.
 */
export interface ChatAgent extends AsyncDisposable {
  /** Unique in a team. */
  readonly name: string;
  /** What the agent does. Shown to models and people who choose between agents. */
  readonly description: string;

  /**
   * Answers new messages.
   *
   * @throws `options.signal.reason` soon after the signal was aborted, with nothing left running.
   */
  onMessages(messages: readonly ChatMessage[], options?: SignalOptions): Promise<AgentResponse>;

  /** The same as a stream: events and chunks, then exactly one `AgentResponse`. Leaving the stream aborts the turn. */
  onMessagesStream(
    messages: readonly ChatMessage[],
    options?: SignalOptions,
  ): AsyncIterable<AgentMessage | AgentResponse>;

  /** Answers a task. */
  run(options?: RunOptions): Promise<TaskResult>;

  /** The same as a stream: the task's messages, events and chunks, the answer, then the `TaskResult`. */
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;

  /** Called when the agent's team is paused, for agents that work between the items of their stream. */
  onPause?(): Promise<void>;

  /** Called when the agent's team resumes. */
  onResume?(): Promise<void>;

  /** Forgets the conversation. */
  reset(): Promise<void>;

  /** Returns the memory as plain JSON. */
  saveState(): Promise<JsonObject>;

  /**
   * Restores a memory from `saveState`.
   *
   * @throws InvalidInputError if `state` is not a saved state.
   */
  loadState(state: JsonObject): Promise<void>;

  /**
   * Returns the settings as plain JSON, for `loadComponent`.
   *
   * @throws ComponentError if a setting cannot be dumped, such as a function.
   */
  dumpComponent(): ComponentModel;
}

/** Whether an item of `onMessagesStream` is the final `AgentResponse`. */
export function isResponse(item: unknown): item is AgentResponse {
  return typeof item === "object" && item !== null && "chatMessage" in item && "innerMessages" in item;
}

/** Whether an item of `runStream` is the final `TaskResult`. */
export function isTaskResult(item: unknown): item is TaskResult {
  return typeof item === "object" && item !== null && "messages" in item && Array.isArray(item.messages);
}
