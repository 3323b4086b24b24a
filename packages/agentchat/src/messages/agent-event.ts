import type { CodeBlock, ToolCall, ToolResult } from "@fenced/core";
import type { JsonCodeResult } from "@fenced/core/web";
import type { MemoryContent } from "../memory/memory.ts";
import type { ChatMessage } from "./chat-message.ts";
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

/** The code of the preceding `CodeGenerationEvent` ran, or was refused. */
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

/** The tools of the preceding `ToolCallRequestEvent` have answered. */
export interface ToolCallExecutionEvent extends MessageBase {
  readonly type: "ToolCallExecutionEvent";
  readonly content: readonly ToolResult[];
}

/** A model's reasoning, or the text that it wrote next to tool calls. */
export interface ThoughtEvent extends MessageBase {
  readonly type: "ThoughtEvent";
  readonly content: string;
}

/** A piece of text that a model is writing. Only in streams, never in a `TaskResult` or a state. */
export interface ModelClientStreamingChunkEvent extends MessageBase {
  readonly type: "ModelClientStreamingChunkEvent";
  readonly content: string;
  /** The `id` that the message or event with the whole text will have. */
  readonly fullMessageId: string;
}

/**
 * A piece of what a program prints while it runs. Only in streams: no `TaskResult`, state or model contains it. The
 * message or event with the result contains the whole output.
 */
export interface CodeOutputEvent extends MessageBase {
  readonly type: "CodeOutputEvent";
  /** The block's position among those that run. */
  readonly index: number;
  readonly stream: "stdout" | "stderr";
  /** As the program wrote it, including control sequences. */
  readonly text: string;
}

/** Code is waiting for an answer through `PendingApprovals`. */
export interface CodeApprovalRequestEvent extends MessageBase {
  readonly type: "CodeApprovalRequestEvent";
  /** The blocks in the order in which they would run. */
  readonly blocks: readonly CodeBlock[];
}

/** An agent is waiting for a person's answer. */
export interface UserInputRequestedEvent extends MessageBase {
  readonly type: "UserInputRequestedEvent";
  /** Identifies the request. */
  readonly requestId: string;
}

/** A team chose who speaks next. Only with `emitTeamEvents`; its source is the team. */
export interface SelectSpeakerEvent extends MessageBase {
  readonly type: "SelectSpeakerEvent";
  /** The names of the speakers; several if they speak at the same time. */
  readonly content: readonly string[];
}

/** The answer of a `SelectorGroupChat`'s model to the question of who speaks next. Only with `emitTeamEvents`. */
export interface SelectorEvent extends MessageBase {
  readonly type: "SelectorEvent";
  readonly content: string;
}

/** What an agent's memories know about what it was told. */
export interface MemoryQueryEvent extends MessageBase {
  readonly type: "MemoryQueryEvent";
  readonly content: readonly MemoryContent[];
}

/** What happens inside an agent's turn, or in a team. Other agents do not receive it. */
export type AgentEvent =
  | CodeGenerationEvent
  | CodeExecutionEvent
  | ToolCallRequestEvent
  | ToolCallExecutionEvent
  | ThoughtEvent
  | ModelClientStreamingChunkEvent
  | CodeOutputEvent
  | CodeApprovalRequestEvent
  | UserInputRequestedEvent
  | SelectSpeakerEvent
  | SelectorEvent
  | MemoryQueryEvent;

/** Any message or event of a chat, distinguished by `type`. */
export type AgentMessage = ChatMessage | AgentEvent;
