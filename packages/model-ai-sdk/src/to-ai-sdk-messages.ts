import {
  type AssistantMessage,
  type ModelMessage,
  parseJson,
  type ToolCall,
  type ToolResult,
  type UserMessage,
} from "@fenced/core";
import type {
  AssistantContent,
  AssistantModelMessage,
  ModelMessage as AISDKMessage,
  ToolModelMessage,
  UserModelMessage,
} from "ai";

type ToolCallPart = Extract<Exclude<AssistantContent, string>[number], { type: "tool-call" }>;

/**
 * Converts messages to the AI SDK's format.
 *
 * @param recall - finds the model's original message for these tool calls, if this client still has it.
 */
export function toAISDKMessages(
  messages: readonly ModelMessage[],
  recall: (calls: readonly ToolCall[]) => AssistantContent | undefined,
): AISDKMessage[] {
  return messages.map((message): AISDKMessage => {
    switch (message.role) {
      case "system":
        return { role: "system", content: message.content };
      case "user":
        return toUserMessage(message);
      case "assistant":
        return toAssistantMessage(message, recall);
      case "tool":
      default:
        return toToolMessage(message.content);
    }
  });
}

function toUserMessage({ content }: UserMessage): UserModelMessage {
  if (typeof content === "string") return { role: "user", content };
  return {
    role: "user",
    content: content.map((part) => (part.type === "text" ? { ...part } : { type: "image", image: new URL(part.url) })),
  };
}

function toAssistantMessage(
  { content, thought }: AssistantMessage,
  recall: (calls: readonly ToolCall[]) => AssistantContent | undefined,
): AssistantModelMessage {
  // A thought next to a text is reasoning, which services do not expect back.
  if (typeof content === "string") return { role: "assistant", content };
  const thoughts = thought === undefined ? [] : [{ type: "text" as const, text: thought }];
  return { role: "assistant", content: recall(content) ?? [...thoughts, ...content.map(toToolCallPart)] };
}

function toToolCallPart(call: ToolCall): ToolCallPart {
  return { type: "tool-call", toolCallId: call.id, toolName: call.name, input: toInput(call.arguments) };
}

function toToolMessage(results: readonly ToolResult[]): ToolModelMessage {
  return {
    role: "tool",
    content: results.map((result) => ({
      type: "tool-result",
      toolCallId: result.callId,
      toolName: result.name,
      output: { type: result.isError ? "error-text" : "text", value: result.content },
    })),
  };
}

/** Parses the arguments to an object: several services reject a whole conversation if one call's arguments are not one. */
export function toInput(argumentsText: string): unknown {
  try {
    const input = parseJson(argumentsText);
    if (typeof input === "object" && input !== null && !Array.isArray(input)) return input;
  } catch {
    // Malformed, as models sometimes write them: passed on in full below.
  }
  return { malformed: argumentsText };
}
