import type { ImageContent, ModelMessage, TextContent } from "@fenced/core";
import type { ChatMessage, ImagePart } from "./chat-message.ts";
import { imageNote, messageToText } from "./message-to-text.ts";

/** A received message as a model should see it: the context of a handoff first, then the message itself. */
export function messageToModelMessages(message: ChatMessage): ModelMessage[] {
  const { source } = message;
  if (message.type === "MultiModalMessage") return [{ role: "user", content: message.content, source }];
  const context = message.type === "HandoffMessage" ? (message.context ?? []) : [];
  return [...context, { role: "user", content: messageToText(message), source }];
}

/** Replaces each image with a note, for a model without vision. */
export function replaceImages(messages: readonly ModelMessage[]): ModelMessage[] {
  return messages.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    return { ...message, content: message.content.map(noteForImage).join("\n") };
  });
}

function noteForImage(part: TextContent | ImageContent | ImagePart): string {
  return part.type === "text" ? part.text : imageNote(part);
}
