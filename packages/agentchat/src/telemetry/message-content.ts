import type { CreateResult, JsonObject, ModelMessage, ToolCall } from "@fenced/core";
import { captured } from "@fenced/core/telemetry";

/** A model's input as JSON, in the conventions' shape. Mentions images without their bytes. */
export function inputMessages(messages: readonly ModelMessage[]): string {
  return JSON.stringify(messages.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

/** A model's answer as JSON, in the conventions' shape. */
export function outputMessages(result: CreateResult): string {
  const { content, thought } = result;
  const parts = [...reasoning(thought), ...(typeof content === "string" ? [text(content)] : content.map(toolCall))];
  return JSON.stringify([{ role: "assistant", parts, finish_reason: finishReason(result) }]);
}

/** Why a model stopped writing, in the conventions' terms. */
export function finishReason({ finishReason: reason }: CreateResult): string {
  if (reason === "tool-calls") return "tool_call";
  return reason === "content-filter" ? "content_filter" : reason;
}

function partsOf(message: ModelMessage): JsonObject[] {
  if (message.role === "tool") {
    return message.content.map(({ callId, content }) => ({
      type: "tool_call_response",
      id: callId,
      response: captured(content),
    }));
  }
  const before = message.role === "assistant" ? reasoning(message.thought) : [];
  if (typeof message.content === "string") return [...before, text(message.content)];
  const parts = message.content.map((part) => {
    if (!("type" in part)) return toolCall(part);
    return part.type === "text" ? text(part.text) : { type: "image" };
  });
  return [...before, ...parts];
}

function text(content: string): JsonObject {
  return { type: "text", content: captured(content) };
}

function reasoning(thought: string | undefined): JsonObject[] {
  return thought === undefined ? [] : [{ type: "reasoning", content: captured(thought) }];
}

function toolCall({ id, name, arguments: args }: ToolCall): JsonObject {
  return { type: "tool_call", id, name, arguments: captured(args) };
}
