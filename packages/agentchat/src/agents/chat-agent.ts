import { type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions, optionsSchema, signalOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { checkChatMessage } from "../messages/check-message.ts";

/** What an agent or a team is asked to do: text (said by `"user"`), one message, or several. */
export type Task = string | ChatMessage | readonly ChatMessage[];

/** Options of a run. */
export interface RunOptions extends SignalOptions {
  /** Default: no new task. A team goes on where it stopped, an agent answers to what it heard before. */
  readonly task?: Task | undefined;
  /** Begin the stream, and the result's messages, with those of the task. Default: true. */
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

/** What a run came to. */
export interface TaskResult {
  /** The task's messages, then everything that was said and done, in order. */
  readonly messages: readonly AgentMessage[];
  /** Why a team stopped, or whom an agent waits for. Absent if a single agent answered. */
  readonly stopReason?: string;
  /**
   * Whom the run waits for: what they are to decide has not happened yet. Save the state, and once there is an answer, in this
   * process or another, load it and run again without a task. Absent if nobody is waited for.
   */
  readonly waitingFor?: readonly WaitingFor[];
}

/** A person's answer or decision that a run cannot go on without. */
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
  /** What happened on the way, in order, without streaming chunks. */
  readonly innerMessages: readonly AgentMessage[];
}

/**
 * One who takes part in a chat.
 *
 * An agent has a memory: it is given only the messages that it has not received yet. A turn that fails or is aborted
 * has not happened: the caller may give it the same messages again. An agent takes one turn at a time.
 */
export interface ChatAgent extends AsyncDisposable {
  /** Unique in a team. */
  readonly name: string;
  /** What the agent is for. Shown where a choice is made between agents. */
  readonly description: string;

  /**
   * Answers to new messages.
   *
   * @throws `options.signal.reason` soon after the signal was aborted, with nothing left running.
   */
  onMessages(messages: readonly ChatMessage[], options?: SignalOptions): Promise<AgentResponse>;

  /** The same as it happens: events and streaming chunks, then exactly one `AgentResponse`. Leaving early is an abort. */
  onMessagesStream(
    messages: readonly ChatMessage[],
    options?: SignalOptions,
  ): AsyncIterable<AgentMessage | AgentResponse>;

  /** Answers to a task. */
  run(options?: RunOptions): Promise<TaskResult>;

  /** The same as it happens: the task's messages, events and chunks, the answer, and last the `TaskResult`. */
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;

  /** Called when the team of the agent is paused, for agents that work between the items of their stream. */
  onPause?(): Promise<void>;

  /** Called when the team of the agent goes on after a pause. */
  onResume?(): Promise<void>;

  /** Forgets everything that was said. */
  reset(): Promise<void>;

  /** The memory as plain JSON. */
  saveState(): Promise<JsonObject>;

  /**
   * Takes over a memory that `saveState` gave.
   *
   * @throws InvalidInputError if `state` is not a saved state.
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
export function isResponse(item: unknown): item is AgentResponse {
  return typeof item === "object" && item !== null && "chatMessage" in item && "innerMessages" in item;
}

/** Tells the item that ends a stream of `runStream` from the others. */
export function isTaskResult(item: unknown): item is TaskResult {
  return typeof item === "object" && item !== null && "messages" in item && Array.isArray(item.messages);
}
