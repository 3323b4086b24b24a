import type { CodeBlock, ToolCall, ToolResult } from "@fenced/core";
import type { ChatMessage } from "./chat-message.ts";
import type { JsonCodeResult } from "./json-code-result.ts";
import type { MessageBase } from "./message-base.ts";

/** An agent's model wrote code. */
export interface CodeGenerationEvent extends MessageBase {
  readonly type: "CodeGenerationEvent";
  /** The model's whole answer. */
  readonly content: string;
  /** The blocks in it that will run. */
  readonly codeBlocks: readonly CodeBlock[];
  /** 0 for the first attempt, 1 for the first retry, ... */
  readonly retryAttempt: number;
}

/** The code of the `CodeGenerationEvent` before it ran, or was not allowed to. */
export interface CodeExecutionEvent extends MessageBase {
  readonly type: "CodeExecutionEvent";
  readonly result: JsonCodeResult;
  /** 0 for the first attempt, 1 for the first retry, ... */
  readonly retryAttempt: number;
}

/** A model asked for tools. */
export interface ToolCallRequestEvent extends MessageBase {
  readonly type: "ToolCallRequestEvent";
  readonly content: readonly ToolCall[];
}

/** The tools of the `ToolCallRequestEvent` before it have answered. */
export interface ToolCallExecutionEvent extends MessageBase {
  readonly type: "ToolCallExecutionEvent";
  readonly content: readonly ToolResult[];
}

/** A model's reasoning, or the text that it wrote next to tool calls. */
export interface ThoughtEvent extends MessageBase {
  readonly type: "ThoughtEvent";
  readonly content: string;
}

/** A piece of a text that a model is writing. Seen in streams only: no `TaskResult` and no state keeps it. */
export interface ModelClientStreamingChunkEvent extends MessageBase {
  readonly type: "ModelClientStreamingChunkEvent";
  readonly content: string;
  /** The `id` that the message or event with the whole text will have. */
  readonly fullMessageId: string;
}

/** An agent waits for a person's answer. */
export interface UserInputRequestedEvent extends MessageBase {
  readonly type: "UserInputRequestedEvent";
  /** Ties the event to the request. */
  readonly requestId: string;
}

/** What happens inside an agent's turn. Other agents do not receive it. */
export type AgentEvent =
  | CodeGenerationEvent
  | CodeExecutionEvent
  | ToolCallRequestEvent
  | ToolCallExecutionEvent
  | ThoughtEvent
  | ModelClientStreamingChunkEvent
  | UserInputRequestedEvent;

/** Everything that can be seen of a chat, told apart by `type`. */
export type AgentMessage = ChatMessage | AgentEvent;
