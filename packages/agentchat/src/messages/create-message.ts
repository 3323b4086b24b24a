import { randomUUID } from "node:crypto";
import type { CodeBlock, CodeResult, JsonValue, ModelMessage, TextContent, ToolCall, ToolResult } from "@fenced/core";
import { checkOptions, optionsSchema } from "@fenced/core/options";
import { toJson } from "@fenced/core/web";
import * as z from "zod";
import type { MemoryContent } from "../memory/memory.ts";
import {
  contentPartSchema,
  modelMessageSchema,
  toolCallSchema,
  toolResultSchema,
} from "../models/model-message-schema.ts";
import type {
  CodeApprovalRequestEvent,
  CodeExecutionEvent,
  CodeGenerationEvent,
  CodeOutputEvent,
  MemoryQueryEvent,
  ModelClientStreamingChunkEvent,
  SelectorEvent,
  SelectSpeakerEvent,
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
import { messageBase, messageOptions, type MessageOptions } from "./message-base.ts";

const textOptions = optionsSchema({ ...messageOptions, content: z.string() });
const multiModalOptions = optionsSchema({ ...messageOptions, content: z.array(contentPartSchema) });
const structuredOptions = optionsSchema({ ...messageOptions, content: z.custom<JsonValue>() });
const handoffOptions = optionsSchema({
  ...messageOptions,
  content: z.string(),
  target: z.string(),
  context: z.array(modelMessageSchema).exactOptional(),
});
const toolCallSummaryOptions = optionsSchema({
  ...messageOptions,
  content: z.string(),
  toolCalls: z.array(toolCallSchema),
  results: z.array(toolResultSchema),
});

/**
 * Creates a `TextMessage`.
 *
 * @throws InvalidInputError if an option is unknown or wrong, as do the functions for the other messages.
 *
 * @example
 * await team.run({ task: textMessage({ source: "user", content: "Plot the temperatures of July." }) });
 */
export function textMessage(options: MessageOptions & { readonly content: string }): TextMessage {
  checkOptions(textOptions, options, "textMessage");
  return { type: "TextMessage", ...messageBase(options), content: options.content };
}

/** Creates a `MultiModalMessage`; create image parts with `imageFromBytes` of `@fenced/core`. */
export function multiModalMessage(
  options: MessageOptions & { readonly content: readonly (TextContent | ImagePart)[] },
): MultiModalMessage {
  checkOptions(multiModalOptions, options, "multiModalMessage");
  return { type: "MultiModalMessage", ...messageBase(options), content: options.content };
}

/** Creates a `StopMessage`. */
export function stopMessage(options: MessageOptions & { readonly content: string }): StopMessage {
  checkOptions(textOptions, options, "stopMessage");
  return { type: "StopMessage", ...messageBase(options), content: options.content };
}

/** Creates a `HandoffMessage`. */
export function handoffMessage(
  options: MessageOptions & {
    readonly content: string;
    readonly target: string;
    readonly context?: readonly ModelMessage[];
  },
): HandoffMessage {
  checkOptions(handoffOptions, options, "handoffMessage");
  const { content, target, context } = options;
  return {
    type: "HandoffMessage",
    ...messageBase(options),
    content,
    target,
    ...(context === undefined ? {} : { context }),
  };
}

/** Creates a `StructuredMessage`. */
export function structuredMessage(options: MessageOptions & { readonly content: JsonValue }): StructuredMessage {
  checkOptions(structuredOptions, options, "structuredMessage");
  return { type: "StructuredMessage", ...messageBase(options), content: options.content };
}

/** Creates a `ToolCallSummaryMessage`. */
export function toolCallSummaryMessage(
  options: MessageOptions & {
    readonly content: string;
    readonly toolCalls: readonly ToolCall[];
    readonly results: readonly ToolResult[];
  },
): ToolCallSummaryMessage {
  checkOptions(toolCallSummaryOptions, options, "toolCallSummaryMessage");
  const { content, toolCalls, results } = options;
  return { type: "ToolCallSummaryMessage", ...messageBase(options), content, toolCalls, results };
}

/** Creates a `ThoughtEvent`. */
export function thoughtEvent(options: MessageOptions & { readonly content: string }): ThoughtEvent {
  return { type: "ThoughtEvent", ...messageBase(options), content: options.content };
}

/** Creates a `ToolCallRequestEvent`. */
export function toolCallRequestEvent(
  options: MessageOptions & { readonly content: readonly ToolCall[] },
): ToolCallRequestEvent {
  return { type: "ToolCallRequestEvent", ...messageBase(options), content: options.content };
}

/** Creates a `ToolCallExecutionEvent`. */
export function toolCallExecutionEvent(
  options: MessageOptions & { readonly content: readonly ToolResult[] },
): ToolCallExecutionEvent {
  return { type: "ToolCallExecutionEvent", ...messageBase(options), content: options.content };
}

/** Creates a `CodeGenerationEvent`. */
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

/** Creates a `CodeExecutionEvent`; bytes in the result's displays become base64 text. */
export function codeExecutionEvent(
  options: MessageOptions & { readonly result: CodeResult; readonly retryAttempt: number },
): CodeExecutionEvent {
  const result = toJson(options.result, { hostPaths: true });
  return { type: "CodeExecutionEvent", ...messageBase(options), result, retryAttempt: options.retryAttempt };
}

/** Creates a `ModelClientStreamingChunkEvent`. */
export function streamingChunkEvent(
  options: MessageOptions & { readonly content: string; readonly fullMessageId: string },
): ModelClientStreamingChunkEvent {
  const { content, fullMessageId } = options;
  return { type: "ModelClientStreamingChunkEvent", ...messageBase(options), content, fullMessageId };
}

/** Creates a `CodeOutputEvent`. */
export function codeOutputEvent(
  options: MessageOptions & Pick<CodeOutputEvent, "index" | "stream" | "text">,
): CodeOutputEvent {
  const { index, stream, text } = options;
  return { type: "CodeOutputEvent", ...messageBase(options), index, stream, text };
}

/** Creates a `CodeApprovalRequestEvent`; pass its `id` to `PendingApprovals.answer`. */
export function codeApprovalRequestEvent(
  options: MessageOptions & { readonly blocks: readonly CodeBlock[] },
): CodeApprovalRequestEvent {
  return { type: "CodeApprovalRequestEvent", ...messageBase(options), blocks: options.blocks };
}

/** Creates a `UserInputRequestedEvent`. */
export function userInputRequestedEvent(options: MessageOptions): UserInputRequestedEvent {
  return { type: "UserInputRequestedEvent", ...messageBase(options), requestId: randomUUID() };
}

/** Creates a `SelectSpeakerEvent`. */
export function selectSpeakerEvent(
  options: MessageOptions & { readonly content: readonly string[] },
): SelectSpeakerEvent {
  return { type: "SelectSpeakerEvent", ...messageBase(options), content: options.content };
}

/** Creates a `SelectorEvent`. */
export function selectorEvent(options: MessageOptions & { readonly content: string }): SelectorEvent {
  return { type: "SelectorEvent", ...messageBase(options), content: options.content };
}

/** Creates a `MemoryQueryEvent`. */
export function memoryQueryEvent(
  options: MessageOptions & { readonly content: readonly MemoryContent[] },
): MemoryQueryEvent {
  return { type: "MemoryQueryEvent", ...messageBase(options), content: options.content };
}
