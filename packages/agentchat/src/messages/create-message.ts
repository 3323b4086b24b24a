import { randomUUID } from "node:crypto";
import type { CodeBlock, CodeResult, JsonValue, ModelMessage, TextContent, ToolCall, ToolResult } from "@fenced/core";
import type {
  CodeExecutionEvent,
  CodeGenerationEvent,
  ModelClientStreamingChunkEvent,
  ThoughtEvent,
  ToolCallExecutionEvent,
  ToolCallRequestEvent,
  UserInputRequestedEvent,
} from "./agent-event.ts";
import type {
  HandoffMessage,
  ImagePart,
  MultiModalMessage,
  StopMessage,
  StructuredMessage,
  TextMessage,
  ToolCallSummaryMessage,
} from "./chat-message.ts";
import { toJsonCodeResult } from "./json-code-result.ts";
import { messageBase, type MessageOptions } from "./message-base.ts";

/**
 * Makes a `TextMessage`.
 *
 * @example
 * await team.run({ task: textMessage({ source: "user", content: "Plot the temperatures of July." }) });
 */
export function textMessage(options: MessageOptions & { readonly content: string }): TextMessage {
  return { type: "TextMessage", ...messageBase(options), content: options.content };
}

/** Makes a `MultiModalMessage`; `imageFromBytes` of core makes image parts. */
export function multiModalMessage(
  options: MessageOptions & { readonly content: readonly (TextContent | ImagePart)[] },
): MultiModalMessage {
  return { type: "MultiModalMessage", ...messageBase(options), content: options.content };
}

/** Makes a `StopMessage`. */
export function stopMessage(options: MessageOptions & { readonly content: string }): StopMessage {
  return { type: "StopMessage", ...messageBase(options), content: options.content };
}

/** Makes a `HandoffMessage`. */
export function handoffMessage(
  options: MessageOptions & {
    readonly content: string;
    readonly target: string;
    readonly context?: readonly ModelMessage[];
  },
): HandoffMessage {
  const { content, target, context } = options;
  return {
    type: "HandoffMessage",
    ...messageBase(options),
    content,
    target,
    ...(context === undefined ? {} : { context }),
  };
}

/** Makes a `StructuredMessage`. */
export function structuredMessage(options: MessageOptions & { readonly content: JsonValue }): StructuredMessage {
  return { type: "StructuredMessage", ...messageBase(options), content: options.content };
}

/** Makes a `ToolCallSummaryMessage`. */
export function toolCallSummaryMessage(
  options: MessageOptions & {
    readonly content: string;
    readonly toolCalls: readonly ToolCall[];
    readonly results: readonly ToolResult[];
  },
): ToolCallSummaryMessage {
  const { content, toolCalls, results } = options;
  return { type: "ToolCallSummaryMessage", ...messageBase(options), content, toolCalls, results };
}

/** Makes a `ThoughtEvent`. */
export function thoughtEvent(options: MessageOptions & { readonly content: string }): ThoughtEvent {
  return { type: "ThoughtEvent", ...messageBase(options), content: options.content };
}

/** Makes a `ToolCallRequestEvent`. */
export function toolCallRequestEvent(
  options: MessageOptions & { readonly content: readonly ToolCall[] },
): ToolCallRequestEvent {
  return { type: "ToolCallRequestEvent", ...messageBase(options), content: options.content };
}

/** Makes a `ToolCallExecutionEvent`. */
export function toolCallExecutionEvent(
  options: MessageOptions & { readonly content: readonly ToolResult[] },
): ToolCallExecutionEvent {
  return { type: "ToolCallExecutionEvent", ...messageBase(options), content: options.content };
}

/** Makes a `CodeGenerationEvent`. */
export function codeGenerationEvent(
  options: MessageOptions & {
    readonly content: string;
    readonly codeBlocks: readonly CodeBlock[];
    readonly retryAttempt: number;
  },
): CodeGenerationEvent {
  const { content, codeBlocks, retryAttempt } = options;
  return { type: "CodeGenerationEvent", ...messageBase(options), content, codeBlocks, retryAttempt };
}

/** Makes a `CodeExecutionEvent`; bytes in the result's displays become base64 text. */
export function codeExecutionEvent(
  options: MessageOptions & { readonly result: CodeResult; readonly retryAttempt: number },
): CodeExecutionEvent {
  const result = toJsonCodeResult(options.result);
  return { type: "CodeExecutionEvent", ...messageBase(options), result, retryAttempt: options.retryAttempt };
}

/** Makes a `ModelClientStreamingChunkEvent`. */
export function streamingChunkEvent(
  options: MessageOptions & { readonly content: string; readonly fullMessageId: string },
): ModelClientStreamingChunkEvent {
  const { content, fullMessageId } = options;
  return { type: "ModelClientStreamingChunkEvent", ...messageBase(options), content, fullMessageId };
}

/** Makes a `UserInputRequestedEvent`. */
export function userInputRequestedEvent(options: MessageOptions): UserInputRequestedEvent {
  return { type: "UserInputRequestedEvent", ...messageBase(options), requestId: randomUUID() };
}
