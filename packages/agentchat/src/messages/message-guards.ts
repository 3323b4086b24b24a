import type { AgentEvent, AgentMessage, CodeOutputEvent, ModelClientStreamingChunkEvent } from "./agent-event.ts";
import type { ChatMessage } from "./chat-message.ts";

const chatMessageTypes: ReadonlySet<string> = new Set<ChatMessage["type"]>([
  "TextMessage",
  "MultiModalMessage",
  "StopMessage",
  "HandoffMessage",
  "StructuredMessage",
  "ToolCallSummaryMessage",
]);

const eventTypes: ReadonlySet<string> = new Set<AgentEvent["type"]>([
  "CodeGenerationEvent",
  "CodeExecutionEvent",
  "ToolCallRequestEvent",
  "ToolCallExecutionEvent",
  "ThoughtEvent",
  "ModelClientStreamingChunkEvent",
  "CodeOutputEvent",
  "CodeApprovalRequestEvent",
  "UserInputRequestedEvent",
  "SelectSpeakerEvent",
  "SelectorEvent",
  "MemoryQueryEvent",
]);

/** True for what agents say to each other; false for events and for the last item of a stream. */
export function isChatMessage(item: object): item is ChatMessage {
  return hasTypeOf(chatMessageTypes, item);
}

/** True for what happens inside an agent's turn. */
export function isAgentEvent(item: object): item is AgentEvent {
  return hasTypeOf(eventTypes, item);
}

/** True for messages and events; false for the `AgentResponse` or `TaskResult` that ends a stream. */
export function isAgentMessage(item: object): item is AgentMessage {
  return isChatMessage(item) || isAgentEvent(item);
}

/** True for pieces of a later, complete message: they are shown as they arrive, and not kept. */
export function isPiece(item: AgentMessage): item is ModelClientStreamingChunkEvent | CodeOutputEvent {
  return item.type === "ModelClientStreamingChunkEvent" || item.type === "CodeOutputEvent";
}

function hasTypeOf(types: ReadonlySet<string>, item: object): boolean {
  return "type" in item && typeof item.type === "string" && types.has(item.type);
}
