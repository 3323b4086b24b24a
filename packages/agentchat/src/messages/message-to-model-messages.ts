import type { ModelMessage } from "@fenced/core";
import type { ChatMessage } from "./chat-message.ts";
import { messageToText, partToText } from "./message-to-text.ts";

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
    return { ...message, content: message.content.map(partToText).join("\n") };
  });
}
