import { randomUUID } from "node:crypto";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { TaskResult } from "../agents/chat-agent.ts";
import {
  type ChatItem,
  type ChatPart,
  chatParts,
  type ChatStreamOptions,
  chatStreamOptions,
  overStream,
} from "./chat-parts.ts";

/** Something that a run is waiting for, in AG-UI's terms. */
export interface AgUiInterrupt {
  readonly id: string;
  readonly reason: string;
  readonly message: string;
  readonly metadata: { readonly source: string };
}

/** How a run ended, in AG-UI's terms. */
export type AgUiOutcome =
  | { readonly type: "success" }
  | { readonly type: "interrupt"; readonly interrupts: readonly AgUiInterrupt[] }
  | { readonly type: "cancelled" };

interface InRun {
  readonly threadId: string;
  readonly runId: string;
}

/** An event of the AG-UI protocol 1.0, as `toAgUiEvents` creates it. */
export type AgUiEvent =
  | ({ readonly type: "RUN_STARTED" } & InRun)
  | ({
      readonly type: "RUN_FINISHED";
      readonly outcome: AgUiOutcome;
      readonly result?: { readonly stopReason: string };
    } & InRun)
  | { readonly type: "RUN_ERROR"; readonly message: string }
  | {
      readonly type: "TEXT_MESSAGE_START";
      readonly messageId: string;
      readonly role: "assistant";
      readonly name: string;
    }
  | { readonly type: "TEXT_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "TEXT_MESSAGE_END"; readonly messageId: string }
  | { readonly type: "REASONING_START" | "REASONING_END" | "REASONING_MESSAGE_END"; readonly messageId: string }
  | { readonly type: "REASONING_MESSAGE_START"; readonly messageId: string; readonly role: "reasoning" }
  | { readonly type: "REASONING_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_START"; readonly toolCallId: string; readonly toolCallName: string }
  | { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_END"; readonly toolCallId: string }
  | {
      readonly type: "TOOL_CALL_RESULT";
      readonly messageId: string;
      readonly toolCallId: string;
      readonly content: string;
      readonly role: "tool";
    }
  | { readonly type: "CUSTOM"; readonly name: string; readonly value: unknown };

/** Options of `toAgUiEvents`. */
export interface AgUiOptions extends ChatStreamOptions {
  /** The conversation's id. Default: a new UUID. */
  readonly threadId?: string | undefined;
  /** The run's id. Default: a new UUID. */
  readonly runId?: string | undefined;
}

const optionSchemas: z.ZodType<AgUiOptions> = optionsSchema({
  ...chatStreamOptions,
  threadId: z.string().min(1).exactOptional(),
  runId: z.string().min(1).exactOptional(),
} satisfies OptionSchemas<AgUiOptions>);

/**
 * Converts a run to events of the AG-UI protocol: text as it is written, thoughts, tool calls. Events that AG-UI does
 * not know become `CUSTOM` events with the event as their value: `CodeOutputEvent` becomes `fenced.CodeOutputEvent`, an
 * image becomes `fenced.image`. A run that is waiting for a person ends with the outcome `interrupt`. An error becomes
 * a `RUN_ERROR`; the stream itself does not throw. Leaving the stream ends the run.
 *
 * @param stream - what `runStream` returned; set `outputTaskMessages: false` to leave out the user's own messages.
 *
 * @example
 * for await (const event of toAgUiEvents(team.runStream({ task, outputTaskMessages: false }), { threadId, runId })) {
 *   response.write(`data: ${JSON.stringify(event)}\n\n`);
 * }
 */
export function toAgUiEvents(
  stream: AsyncIterable<ChatItem>,
  options: AgUiOptions = {},
): AsyncGenerator<AgUiEvent, void, void> {
  const checked = checkOptions(optionSchemas, options, "toAgUiEvents");
  const run = { threadId: checked.threadId ?? randomUUID(), runId: checked.runId ?? randomUUID() };
  return overStream(stream, (items) => encode(chatParts(items, checked), run));
}

async function* encode(parts: AsyncIterable<ChatPart>, run: InRun): AsyncGenerator<AgUiEvent, void, void> {
  yield { type: "RUN_STARTED", ...run };
  for await (const part of parts) yield* eventsOf(part, run);
}

function finished(run: InRun, result: TaskResult | undefined): AgUiEvent {
  const { stopReason, waitingFor = [] } = result ?? {};
  const interrupts = waitingFor.map(({ source, reason }) => {
    return { id: `${run.runId}:${source}`, reason: "fenced:person", message: reason, metadata: { source } };
  });
  const outcome: AgUiOutcome = interrupts.length === 0 ? { type: "success" } : { type: "interrupt", interrupts };
  return { type: "RUN_FINISHED", ...run, outcome, ...(stopReason !== undefined && { result: { stopReason } }) };
}

function* eventsOf(part: ChatPart, run: InRun): Generator<AgUiEvent, void, void> {
  switch (part.type) {
    case "text-start":
      yield { type: "TEXT_MESSAGE_START", messageId: part.id, role: "assistant", name: part.origin.source };
      break;
    case "text-delta":
      yield { type: "TEXT_MESSAGE_CONTENT", messageId: part.id, delta: part.delta };
      break;
    case "text-end":
      yield { type: "TEXT_MESSAGE_END", messageId: part.id };
      break;
    case "thought":
      yield* reasoning(part.event.id, part.event.content);
      break;
    case "tool-call": {
      const { id: toolCallId, name, arguments: delta } = part.call;
      yield { type: "TOOL_CALL_START", toolCallId, toolCallName: name };
      if (delta !== "") yield { type: "TOOL_CALL_ARGS", toolCallId, delta };
      yield { type: "TOOL_CALL_END", toolCallId };
      break;
    }
    case "tool-result": {
      const { callId: toolCallId, content } = part.result;
      const messageId = `${part.messageId}:${toolCallId}`;
      yield { type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool" };
      break;
    }
    case "image": {
      const { url, mediaType, source } = part;
      yield { type: "CUSTOM", name: "fenced.image", value: { url, mediaType, source } };
      break;
    }
    case "event":
      yield { type: "CUSTOM", name: `fenced.${part.message.type}`, value: part.message };
      break;
    case "end":
      yield finished(run, part.result);
      break;
    case "aborted":
      yield { type: "RUN_FINISHED", ...run, outcome: { type: "cancelled" } };
      break;
    default:
      yield { type: "RUN_ERROR", message: part.text };
  }
}

function* reasoning(messageId: string, delta: string): Generator<AgUiEvent, void, void> {
  yield { type: "REASONING_START", messageId };
  yield { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" };
  if (delta !== "") yield { type: "REASONING_MESSAGE_CONTENT", messageId, delta };
  yield { type: "REASONING_MESSAGE_END", messageId };
  yield { type: "REASONING_END", messageId };
}
