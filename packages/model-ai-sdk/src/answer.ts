import type { CreateResult, ToolCall } from "@fenced/core";
import type { FinishReason, LanguageModelUsage } from "ai";

/** The relevant parts of a model's answer, whole or streamed. */
export type AnswerPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | {
      readonly type: "tool-call";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly providerExecuted?: boolean | undefined;
    };

/** Puts a model's answer together from its parts. */
export class Answer {
  #text = "";
  #reasoning = "";
  readonly #toolCalls: ToolCall[] = [];

  add(part: AnswerPart): void {
    if (part.type === "text") this.#text += part.text;
    else if (part.type === "reasoning") this.#reasoning += part.text;
    // Tools that the service ran itself, such as a web search, are not for the caller to run.
    else if (part.providerExecuted !== true) this.#toolCalls.push(toToolCall(part));
  }

  finish(reason: FinishReason, usage: LanguageModelUsage): CreateResult {
    const hasCalls = this.#toolCalls.length > 0;
    const thought = [this.#reasoning, hasCalls ? this.#text : ""].filter((text) => text.trim() !== "").join("\n\n");
    return {
      content: hasCalls ? this.#toolCalls : this.#text,
      ...(thought !== "" && { thought }),
      ...(hasCalls && this.#reasoning.trim() !== "" && { reasoning: this.#reasoning }),
      usage: { promptTokens: usage.inputTokens ?? 0, completionTokens: usage.outputTokens ?? 0 },
      finishReason: reason === "other" ? "unknown" : reason,
    };
  }
}

function toToolCall(part: Extract<AnswerPart, { type: "tool-call" }>): ToolCall {
  // Text by `keepArgumentsText`; parsed if the model called a tool that was not offered.
  const text = typeof part.input === "string" ? part.input : JSON.stringify(part.input ?? {});
  return { id: part.toolCallId, name: part.toolName, arguments: text };
}
