import type { JsonObject } from "@fenced/core";
import {
  BaseChatAgent,
  type AgentResponse,
  type ChatMessage,
  handoffMessage,
  messageToText,
  stopMessage,
  textMessage,
} from "../../src/index.ts";

/** Repeats the first new message or, if there is none, what it said last. */
export class Echo extends BaseChatAgent {
  last = "";
  turns = 0;
  readonly #stopAt: number;

  /** @param stopAt - the turn in which it says `TERMINATE` instead. */
  constructor(name: string, { stopAt = Infinity }: { stopAt?: number } = {}) {
    super({ name, description: `echo ${name}` });
    this.#stopAt = stopAt;
  }

  override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<AgentResponse> {
    this.turns += 1;
    const [first] = messages;
    if (first !== undefined) this.last = messageToText(first);
    const source = this.name;
    const chatMessage =
      this.turns >= this.#stopAt
        ? stopMessage({ source, content: "TERMINATE" })
        : textMessage({ source, content: this.last });
    yield { chatMessage, innerMessages: [] };
  }

  override async reset(): Promise<void> {
    this.last = "";
  }

  override async saveState(): Promise<JsonObject> {
    return { last: this.last, turns: this.turns };
  }

  override async loadState(state: JsonObject): Promise<void> {
    this.last = typeof state["last"] === "string" ? state["last"] : "";
    this.turns = Number(state["turns"]);
  }
}

/** Hands the chat to its target. */
export class HandingOff extends BaseChatAgent {
  readonly #target: string;

  constructor(name: string, target: string) {
    super({ name, description: `hands off to ${target}` });
    this.#target = target;
  }

  override async *onMessagesStream(): AsyncGenerator<AgentResponse> {
    const content = `Transferred to ${this.#target}.`;
    yield {
      chatMessage: handoffMessage({ source: this.name, target: this.#target, content }),
      innerMessages: [],
    };
  }
}

/** The sources of the messages, in order. */
export function sources(messages: readonly { readonly source: string }[]): string[] {
  return messages.map(({ source }) => source);
}
