import { randomUUID } from "node:crypto";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { parseJson } from "../common/json.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import {
  type ChatItem,
  type ChatPart,
  chatParts,
  type ChatStreamOptions,
  chatStreamOptions,
  overStream,
} from "./chat-parts.ts";

interface Origin {
  readonly providerMetadata: { readonly fenced: { readonly [name: string]: string } };
}

/** A chunk of the AI SDK's UI message stream, as `toUIMessageStream` creates it; a `UIMessageChunk` of `ai` 6 and 7. */
export type UIMessageStreamChunk =
  | { type: "start"; messageId: string }
  | { type: "finish" }
  | { type: "abort" }
  | { type: "error"; errorText: string }
  | ({ type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; id: string } & Partial<Origin>)
  | { type: "text-delta" | "reasoning-delta"; id: string; delta: string }
  | { type: "tool-input-available"; toolCallId: string; toolName: string; input: unknown; dynamic: true }
  | { type: "tool-output-available"; toolCallId: string; output: unknown; dynamic: true }
  | { type: "tool-output-error"; toolCallId: string; errorText: string; dynamic: true }
  | ({ type: "file"; url: string; mediaType: string } & Origin)
  | { type: `data-${string}`; data: unknown; transient?: boolean };

/** Options of `toUIMessageStream`. */
export interface UIMessageStreamOptions extends ChatStreamOptions {
  /** The id of the streamed message. Default: a new UUID. */
  readonly messageId?: string | undefined;
}

const optionSchemas: z.ZodType<UIMessageStreamOptions> = optionsSchema({
  ...chatStreamOptions,
  messageId: z.string().min(1).exactOptional(),
} satisfies OptionSchemas<UIMessageStreamOptions>);

/**
 * Converts a run to the AI SDK's UI message stream, for `createUIMessageStreamResponse` and `useChat`: one assistant
 * message with the texts, thoughts, tool calls and images of all agents. `providerMetadata.fenced.source` names the
 * agent that wrote a text. Events that the AI SDK does not know become data parts with the event as their data, such as
 * `data-CodeExecutionEvent`; live output is a transient part, `data-CodeOutputEvent`. The last data part,
 * `data-result`, contains `stopReason` and `waitingFor`. Cancelling the stream ends the run.
 *
 * @param stream - what `runStream` returned; set `outputTaskMessages: false` to leave out the user's own messages.
 *
 * @example
 * const stream = toUIMessageStream(team.runStream({ task, outputTaskMessages: false, signal: request.signal }));
 * return createUIMessageStreamResponse({ stream });
 */
export function toUIMessageStream(
  stream: AsyncIterable<ChatItem>,
  options: UIMessageStreamOptions = {},
): ReadableStream<UIMessageStreamChunk> {
  const { messageId = randomUUID(), ...checked } = checkOptions(optionSchemas, options, "toUIMessageStream");
  const chunks = overStream(stream, (items) => encode(chatParts(items, checked), messageId));
  return new ReadableStream<UIMessageStreamChunk>(
    {
      async pull(controller) {
        const step = await chunks.next();
        if (step.done === true) controller.close();
        else controller.enqueue(step.value);
      },
      async cancel() {
        await chunks.return();
      },
    },
    // Does not read ahead: a slow reader slows the run down.
    { highWaterMark: 0 },
  );
}

async function* encode(
  parts: AsyncIterable<ChatPart>,
  messageId: string,
): AsyncGenerator<UIMessageStreamChunk, void, void> {
  yield { type: "start", messageId };
  for await (const part of parts) yield* chunksOf(part);
}

function* chunksOf(part: ChatPart): Generator<UIMessageStreamChunk, void, void> {
  switch (part.type) {
    case "text-start":
      yield { type: "text-start", id: part.id, ...from(part.origin.source, part.origin.metadata) };
      break;
    case "text-delta":
      yield { type: "text-delta", id: part.id, delta: part.delta };
      break;
    case "text-end":
      yield { type: "text-end", id: part.id };
      break;
    case "thought": {
      const { id, source, content } = part.event;
      yield { type: "reasoning-start", id, ...from(source) };
      yield { type: "reasoning-delta", id, delta: content };
      yield { type: "reasoning-end", id };
      break;
    }
    case "tool-call": {
      const { id: toolCallId, name: toolName, arguments: input } = part.call;
      yield { type: "tool-input-available", toolCallId, toolName, input: parsed(input), dynamic: true };
      break;
    }
    case "tool-result": {
      const { callId: toolCallId, content, isError } = part.result;
      yield isError
        ? { type: "tool-output-error", toolCallId, errorText: content, dynamic: true }
        : { type: "tool-output-available", toolCallId, output: content, dynamic: true };
      break;
    }
    case "image":
      yield { type: "file", url: part.url, mediaType: part.mediaType, ...from(part.source) };
      break;
    case "event":
      yield dataOf(part.message);
      break;
    case "end":
      if (part.result?.stopReason !== undefined) yield resultOf(part.result);
      yield { type: "finish" };
      break;
    case "aborted":
      yield { type: "abort" };
      break;
    default:
      yield { type: "error", errorText: part.text };
  }
}

function from(source: string, metadata: Readonly<Record<string, string>> = {}): Origin {
  return { providerMetadata: { fenced: { ...metadata, source } } };
}

function dataOf(message: AgentMessage): UIMessageStreamChunk {
  const transient = message.type === "CodeOutputEvent" ? { transient: true } : {};
  return { type: `data-${message.type}`, data: message, ...transient };
}

function resultOf({ stopReason, waitingFor }: { stopReason?: string; waitingFor?: unknown }): UIMessageStreamChunk {
  return { type: "data-result", data: { stopReason, ...(waitingFor !== undefined && { waitingFor }) } };
}

/** Parses arguments. Text that is not JSON, or nested too deep to be sent as JSON, stays text. */
function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  const value = parseJson(text);
  return value === undefined ? text : value;
}
