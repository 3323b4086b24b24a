import type { CreateResult, ModelMessage } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { thoughtEvent } from "../messages/create-message.ts";
import type { AgentResponse } from "./chat-agent.ts";

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

  /** The model's reasoning as an event, if there is any. The call's token usage is on the message with the answer. */
  *thoughtOf({ thought }: CreateResult, id?: string): Generator<AgentMessage, void, void> {
    if (thought === undefined || thought === "") return;
    yield this.record(thoughtEvent({ source: this.source, content: thought, ...(id === undefined ? {} : { id }) }));
  }

  /** The model's answer as it should be remembered. */
  memoryOf({ content, thought }: CreateResult): ModelMessage {
    return { role: "assistant", content, source: this.source, ...(thought === undefined ? {} : { thought }) };
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
