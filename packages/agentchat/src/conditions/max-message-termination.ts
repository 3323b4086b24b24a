import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({
  maxMessages: wholeNumberOption({ from: 1 }),
  includeEvents: z.boolean().optional(),
});

/** What counts as a message. */
export interface MaxMessageTerminationOptions {
  /** Count what happens inside turns, too: tool calls, thoughts, code. Default: false. */
  readonly includeEvents?: boolean | undefined;
}

/** Ends the chat after a number of messages, including those of the task. */
export class MaxMessageTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<MaxMessageTermination> = defineComponent({
    provider: "@fenced/agentchat:MaxMessageTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ maxMessages, ...options }) => new MaxMessageTermination(maxMessages, options),
  });

  readonly #maxMessages: number;
  readonly #includeEvents: boolean;
  #count = 0;

  /** @throws InvalidInputError if `maxMessages` is not a whole number of at least 1, or an option is unknown or wrong. */
  constructor(maxMessages: number, options: MaxMessageTerminationOptions = {}) {
    super();
    const checked = checkOptions(configSchema, { ...options, maxMessages }, "MaxMessageTermination");
    this.#maxMessages = checked.maxMessages;
    this.#includeEvents = checked.includeEvents ?? false;
  }

  override dumpComponent(): ComponentModel {
    return MaxMessageTermination.component.dump({
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
