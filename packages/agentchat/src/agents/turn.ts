import { randomUUID } from "node:crypto";
import type { ChatCompletionClient, CreateOptions, CreateResult, ModelMessage } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { thoughtEvent } from "../messages/create-message.ts";
import { callModel } from "../models/call-model.ts";
import type { AgentResponse } from "./chat-agent.ts";

/** How a turn asks a model. */
export interface AskModelOptions {
  readonly modelClient: ChatCompletionClient;
  readonly stream: boolean;
  readonly request?: Omit<CreateOptions, "signal"> | undefined;
}

/** Whether the service stopped the model in the middle of its answer. */
export function isCut({ finishReason }: CreateResult): boolean {
  return finishReason === "length" || finishReason === "content-filter" || finishReason === "error";
}

/** Tells programs that an answer is not whole. */
export function cutMetadata(result: CreateResult): Record<string, string> {
  return isCut(result) ? { finishReason: result.finishReason } : {};
}

/** One turn of an agent: what happened in it so far. */
export class Turn {
  readonly source: string;
  readonly signal: AbortSignal | undefined;
  readonly #innerMessages: AgentMessage[] = [];

  constructor(source: string, signal: AbortSignal | undefined) {
    this.source = source;
    this.signal = signal;
  }

  /** Keeps an event for the response and returns it, to be yielded. */
  record<Event extends AgentMessage>(event: Event): Event {
    this.#innerMessages.push(event);
    return event;
  }

  /** Asks the model, yields chunks and the model's thought, and returns its answer. */
  async *askModel(
    messages: readonly ModelMessage[],
    options: AskModelOptions,
  ): AsyncGenerator<AgentMessage, ModelAnswer, void> {
    const { source, signal } = this;
    const messageId = randomUUID();
    const { result, streamed } = yield* callModel(messages, { ...options, source, signal, messageId });
    const { content, thought = "" } = result;
    // The text next to tool calls becomes the thought; do not repeat it to a reader who has seen its chunks.
    const id = typeof content !== "string" && streamed === thought ? { id: messageId } : {};
    // The call's token usage is on the message with the answer.
    if (thought !== "") yield this.record(thoughtEvent({ ...id, source, content: thought }));
    return { messageId, result };
  }

  /** The model's answer as it should be remembered. */
  memoryOf({ content, thought, reasoning }: CreateResult): ModelMessage {
    return {
      role: "assistant",
      content,
      source: this.source,
      ...(thought !== undefined && { thought }),
      ...(reasoning !== undefined && { reasoning }),
    };
  }

  /** The response that ends the turn. */
  response(chatMessage: ChatMessage): AgentResponse {
    return { chatMessage, innerMessages: [...this.#innerMessages] };
  }
}

/** An answer of a model, and the id of the message that it becomes. */
export interface ModelAnswer {
  readonly messageId: string;
  readonly result: CreateResult;
}
