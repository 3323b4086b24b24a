import type { ModelMessage } from "@fenced/core";

/** The conversation as text: one paragraph per message, with the speaker's name. Leaves out tool calls and their results. */
export function historyText(messages: readonly ModelMessage[]): string {
  return messages.flatMap(lineOf).join("\n\n");
}

function lineOf(message: ModelMessage): string[] {
  switch (message.role) {
    case "system":
      return [message.content];
    case "tool":
      return [];
    case "assistant":
      return typeof message.content === "string" ? [`${message.source ?? "assistant"}: ${message.content}`] : [];
    default:
      return [`${message.source}: ${textOf(message.content)}`];
  }
}

function textOf(content: Extract<ModelMessage, { role: "user" }>["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join(" ");
}
