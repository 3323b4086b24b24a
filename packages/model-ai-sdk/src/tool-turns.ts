import type { ToolCall } from "@fenced/core";
import type { AssistantContent, ModelMessage } from "ai";
import { toInput } from "./to-ai-sdk-messages.ts";

const capacity = 256;

/**
 * Remembers a model's original answers with tool calls. Some services (Claude with thinking, Gemini 3, OpenAI's
 * reasoning models) require them back with signatures that a `ToolCall` cannot hold, or reject the conversation.
 */
export class ToolTurns {
  readonly #contents = new Map<string, AssistantContent>();

  remember(calls: readonly ToolCall[], answer: readonly ModelMessage[]): void {
    const message = answer.find((candidate) => candidate.role === "assistant");
    if (message === undefined || typeof message.content === "string") return;
    this.#contents.set(keyOf(calls), message.content.map(withObjectInput));
    const oldest = this.#contents.keys().next();
    if (this.#contents.size > capacity && oldest.done !== true) this.#contents.delete(oldest.value);
  }

  recall(calls: readonly ToolCall[]): AssistantContent | undefined {
    return this.#contents.get(keyOf(calls));
  }
}

type Part = Exclude<AssistantContent, string>[number];

function withObjectInput(part: Part): Part {
  return part.type === "tool-call" && typeof part.input === "string" ? { ...part, input: toInput(part.input) } : part;
}

// Ids alone may repeat: small servers number their calls from 1 in each conversation.
function keyOf(calls: readonly ToolCall[]): string {
  return JSON.stringify(calls.map(({ id, name, arguments: text }) => [id, name, text]));
}
