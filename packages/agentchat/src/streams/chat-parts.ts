import type { ToolCall, ToolResult } from "@fenced/core";
import { callbackOption, type OptionSchemas } from "@fenced/core/options";
import { isResponse, isTaskResult, type AgentResponse, type TaskResult } from "../agents/chat-agent.ts";
import type { AgentMessage, ModelClientStreamingChunkEvent, ThoughtEvent } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { messageToText } from "../messages/message-to-text.ts";

/** The source and the metadata of a text. */
interface TextOrigin {
  readonly source: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A part of a chat, in terms that UI protocols share. */
export type ChatPart =
  | { readonly type: "text-start"; readonly id: string; readonly origin: TextOrigin }
  | { readonly type: "text-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "text-end"; readonly id: string }
  | { readonly type: "thought"; readonly event: ThoughtEvent }
  | { readonly type: "tool-call"; readonly call: ToolCall; readonly messageId: string }
  | { readonly type: "tool-result"; readonly result: ToolResult; readonly messageId: string }
  | { readonly type: "image"; readonly url: string; readonly mediaType: string; readonly source: string }
  /** A message or event that UI protocols do not know, unchanged. */
  | { readonly type: "event"; readonly message: AgentMessage }
  /** The last part is one of these. */
  | { readonly type: "end"; readonly result: TaskResult | undefined }
  | { readonly type: "aborted" }
  | { readonly type: "error"; readonly text: string };

/** An item of a chat's stream. */
export type ChatItem = AgentMessage | TaskResult | AgentResponse;

/** Options of the streams for user interfaces. */
export interface ChatStreamOptions {
  /**
   * Returns the text that the reader gets for an error. Default: `An error occurred.`, because messages may name paths
   * and services.
   */
  readonly onError?: ((error: unknown) => string) | undefined;
}

/** The schemas of these options, for `optionsSchema`. */
export const chatStreamOptions: OptionSchemas<ChatStreamOptions> = {
  onError: callbackOption<(error: unknown) => string>().exactOptional(),
};

/** Splits a chat into parts. If the chat throws, the error is its last part. */
export async function* chatParts(
  items: AsyncIterable<ChatItem>,
  { onError = () => "An error occurred." }: ChatStreamOptions,
): AsyncGenerator<ChatPart, void, void> {
  const messages = new MessageParts();
  let result: TaskResult | undefined;
  try {
    for await (const item of items) {
      if (isTaskResult(item)) result = item;
      else yield* messages.of(isResponse(item) ? item.chatMessage : item);
    }
    yield* messages.close();
    yield { type: "end", result };
  } catch (error) {
    yield* messages.close();
    yield isAbort(error) ? { type: "aborted" } : { type: "error", text: onError(error) };
  }
}

/** Splits messages into parts. Does not repeat streamed text. */
class MessageParts {
  readonly #open: Map<string, string> = new Map();

  /** Ends texts that are still open. */
  *close(): Generator<ChatPart, void, void> {
    for (const id of this.#open.keys()) yield { type: "text-end", id };
    this.#open.clear();
  }

  *of(message: AgentMessage): Generator<ChatPart, void, void> {
    switch (message.type) {
      case "ModelClientStreamingChunkEvent":
        yield* this.#chunk(message);
        break;
      case "ThoughtEvent":
        if (this.#open.has(message.id)) yield* this.#text(message);
        else yield { type: "thought", event: message };
        break;
      case "ToolCallRequestEvent":
        for (const call of message.content) yield { type: "tool-call", call, messageId: message.id };
        break;
      case "ToolCallExecutionEvent":
        for (const result of message.content) yield { type: "tool-result", result, messageId: message.id };
        break;
      case "CodeGenerationEvent":
      case "HandoffMessage":
      case "StructuredMessage":
        yield* this.#text(message);
        yield { type: "event", message };
        break;
      case "TextMessage":
      case "StopMessage":
      case "ToolCallSummaryMessage":
        yield* this.#text(message);
        break;
      case "MultiModalMessage":
        yield* this.#text(message);
        yield* imagesOf(message);
        break;
      default:
        yield { type: "event", message };
    }
  }

  *#chunk({ fullMessageId: id, source, metadata, content }: ModelClientStreamingChunkEvent): Generator<ChatPart> {
    const before = this.#open.get(id);
    if (before === undefined) yield { type: "text-start", id, origin: { source, metadata } };
    this.#open.set(id, (before ?? "") + content);
    if (content !== "") yield { type: "text-delta", id, delta: content };
  }

  /** The text of a message, without what has been streamed. */
  *#text(message: AgentMessage): Generator<ChatPart, void, void> {
    const { id, source, metadata } = message;
    const text = textOf(message);
    const streamed = this.#open.get(id);
    if (streamed === undefined) yield { type: "text-start", id, origin: { source, metadata } };
    const rest = text.startsWith(streamed ?? "") ? text.slice((streamed ?? "").length) : "";
    if (rest !== "") yield { type: "text-delta", id, delta: rest };
    yield { type: "text-end", id };
    this.#open.delete(id);
  }
}

function textOf(message: AgentMessage): string {
  if (message.type !== "MultiModalMessage") return messageToText(message);
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function* imagesOf(message: Extract<ChatMessage, { type: "MultiModalMessage" }>): Generator<ChatPart, void, void> {
  for (const part of message.content) {
    if (part.type === "text") continue;
    const mediaType = /^data:([^;,]+)/.exec(part.url)?.[1] ?? "image/*";
    yield { type: "image", url: part.url, mediaType, source: message.source };
  }
}

/** Whether an error is an abort that the caller requested. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** A generator over a stream. Leaving it leaves the stream at once, even while it is waiting for the next item. */
export function overStream<T>(
  stream: AsyncIterable<ChatItem>,
  encode: (items: AsyncIterable<ChatItem>) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const source = stream[Symbol.asyncIterator]();
  const items = encode({ [Symbol.asyncIterator]: () => source });
  const end = items.return.bind(items);
  items.return = async (value) => {
    const ended = end(value);
    await source.return?.();
    return ended;
  };
  return items;
}
