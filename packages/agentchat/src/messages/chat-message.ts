import type { ImageContent, JsonValue, ModelMessage, TextContent, ToolCall, ToolResult } from "@fenced/core";
import type { MessageBase } from "./message-base.ts";

/** An image in a message. */
export interface ImagePart extends ImageContent {
  /** The file that contains the image, if there is one. A model without vision gets this path instead. */
  readonly path?: string;
}

/** Plain text; may contain Markdown with fenced code. */
export interface TextMessage extends MessageBase {
  readonly type: "TextMessage";
  readonly content: string;
}

/** Text and images. */
export interface MultiModalMessage extends MessageBase {
  readonly type: "MultiModalMessage";
  readonly content: readonly (TextContent | ImagePart)[];
}

/** A request to end the chat, or a condition's reason for ending it. */
export interface StopMessage extends MessageBase {
  readonly type: "StopMessage";
  readonly content: string;
}

/** Hands the conversation to another agent. */
export interface HandoffMessage extends MessageBase {
  readonly type: "HandoffMessage";
  readonly content: string;
  /** The name of the agent that takes over. */
  readonly target: string;
  /** What the target's model should know: the tool calls of the same turn and their results. */
  readonly context?: readonly ModelMessage[];
}

/** Data that matches a requested schema. */
export interface StructuredMessage extends MessageBase {
  readonly type: "StructuredMessage";
  readonly content: JsonValue;
}

/** The results of tool calls as text, given as an answer without another model call. */
export interface ToolCallSummaryMessage extends MessageBase {
  readonly type: "ToolCallSummaryMessage";
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

/** What agents say to each other: every other agent of a team receives it. */
export type ChatMessage =
  | TextMessage
  | MultiModalMessage
  | StopMessage
  | HandoffMessage
  | StructuredMessage
  | ToolCallSummaryMessage;
