import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import { checkCount } from "../common/check-count.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ maxMessages: z.number(), includeEvents: z.boolean().optional() });

/** What counts as a message. */
export interface MaxMessageTerminationOptions {
  /** Count what happens inside turns, too: tool calls, thoughts, code. Default: false. */
  readonly includeEvents?: boolean | undefined;
}

/** Ends the chat after a number of messages; those of the task count. */
export class MaxMessageTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #maxMessages: number;
  readonly #includeEvents: boolean;
  #count = 0;

  /** @throws InvalidInputError if `maxMessages` is not a whole number of at least 1. */
  constructor(maxMessages: number, { includeEvents = false }: MaxMessageTerminationOptions = {}) {
    super();
    this.#maxMessages = checkCount("maxMessages", maxMessages, 1);
    this.#includeEvents = includeEvents;
  }

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): MaxMessageTermination {
    const { maxMessages, ...options } = parseComponentConfig(configSchema, config, context.provider);
    return new MaxMessageTermination(maxMessages, options);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("MaxMessageTermination", {
      maxMessages: this.#maxMessages,
      includeEvents: this.#includeEvents,
    });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    this.#count += messages.filter((message) => this.#includeEvents || isChatMessage(message)).length;
    if (this.#count < this.#maxMessages) return undefined;
    return `The limit of ${this.#maxMessages} messages is reached (${this.#count}).`;
  }

  protected override restart(): void {
    this.#count = 0;
  }
}
