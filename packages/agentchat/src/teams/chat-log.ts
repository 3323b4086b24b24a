import { InvalidInputError, type JsonObject } from "@fenced/core";
import * as z from "zod";
import { jsonObjectSchema, mapSchema, toJson } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { agentMessageSchema, chatMessageSchema } from "../messages/agent-message-schema.ts";
import type { ChatMessage } from "../messages/chat-message.ts";

const stateSchema = z.strictObject({
  messages: z.array(agentMessageSchema),
  unread: mapSchema(z.array(chatMessageSchema)),
  waiting: z.array(z.string()),
  participants: mapSchema(jsonObjectSchema),
  manager: jsonObjectSchema,
});

/** A team's validated state. */
export interface ChatState {
  readonly participants: ReadonlyMap<string, JsonObject>;
  readonly manager: JsonObject;
  /** Restores the log. */
  readonly apply: () => void;
}

/** The messages of a team, and which of them each participant has not heard yet. */
export class ChatLog {
  /** Participants that are waiting for a person and take the first turn of the next run. */
  waiting: readonly string[] = [];
  readonly #names: readonly string[];
  #messages: AgentMessage[] = [];
  #unread: Map<string, ChatMessage[]> = new Map();

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  get messages(): readonly AgentMessage[] {
    return this.#messages;
  }

  /** Messages that a participant has not heard yet. */
  unreadOf(name: string): readonly ChatMessage[] {
    return this.#unread.get(name) ?? [];
  }

  /** Keeps `messages`; all participants except the speaker will hear those in `told`. */
  add(messages: readonly AgentMessage[], told: readonly ChatMessage[], speaker?: string): void {
    this.#messages.push(...messages);
    for (const name of this.#names) {
      if (name !== speaker) this.#unread.set(name, [...this.unreadOf(name), ...told]);
    }
  }

  /** Notes that a participant has heard its first unread messages. */
  heard(name: string, count: number): void {
    this.#unread.set(name, this.unreadOf(name).slice(count));
  }

  /** Participants that start over hear nothing older. */
  forgetUnread(): void {
    this.#unread = new Map();
  }

  reset(): void {
    this.#messages = [];
    this.forgetUnread();
    this.waiting = [];
  }

  save(participants: ReadonlyMap<string, JsonObject>, manager: JsonObject): JsonObject {
    return {
      messages: toJson(this.#messages),
      unread: toJson(Object.fromEntries(this.#unread)),
      waiting: [...this.waiting],
      participants: Object.fromEntries(participants),
      manager,
    };
  }

  /** @throws InvalidInputError if it is not a saved state, or belongs to a team with other participants. */
  read(state: JsonObject, owner: string): ChatState {
    const { messages, unread, waiting, participants, manager } = parseState(stateSchema, state, owner);
    const isMissing = this.#names.some((name) => !participants.has(name));
    // A participant that this team does not have would lose its memory.
    const all = [...participants.keys(), ...unread.keys(), ...waiting];
    if (isMissing || all.some((name) => !this.#names.includes(name))) {
      throw new InvalidInputError(`The state belongs to a team of ${[...participants.keys()].join(", ")}`, {
        remedy: "Load it into a team with the same participants in the same order.",
      });
    }
    const apply = (): void => {
      this.#messages = messages;
      this.#unread = unread;
      this.waiting = waiting;
    };
    return { participants, manager, apply };
  }
}
