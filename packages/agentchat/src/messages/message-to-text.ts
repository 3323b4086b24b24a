import type { TextContent } from "@fenced/core";
import type { AgentMessage } from "./agent-event.ts";
import type { ImagePart } from "./chat-message.ts";

/** A message or event as text: what a person reads, and what conditions search. */
export function messageToText(message: AgentMessage): string {
  switch (message.type) {
    case "MultiModalMessage":
      return message.content.map(partToText).join("\n");
    case "StructuredMessage":
      return JSON.stringify(message.content, null, 2);
    case "CodeExecutionEvent":
      return message.result.output;
    case "ToolCallRequestEvent":
      return message.content.map((call) => `${call.name}(${call.arguments})`).join("\n");
    case "ToolCallExecutionEvent":
      return message.content.map((result) => result.content).join("\n");
    case "CodeOutputEvent":
      return message.text;
    case "CodeApprovalRequestEvent":
      return message.blocks.map(({ code }) => code).join("\n");
    case "UserInputRequestedEvent":
      return "";
    case "MemoryQueryEvent":
      return message.content.map(({ content }) => content).join("\n");
    case "SelectSpeakerEvent":
      return message.content.join(", ");
    default:
      return message.content;
  }
}

/** A text, or what is shown in place of an image: its file or address, if it has one. */
export function partToText(part: TextContent | ImagePart): string {
  if (part.type === "text") return part.text;
  if (part.path !== undefined) return `[image: ${part.path}]`;
  return part.url.startsWith("data:") ? "[image]" : `[image: ${part.url}]`;
}
