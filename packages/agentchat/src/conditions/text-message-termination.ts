import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ source: z.string().optional() });

/** Ends the chat when any agent, or the agent `source`, sends a `TextMessage`. */
export class TextMessageTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<TextMessageTermination> = defineComponent({
    provider: "@fenced/agentchat:TextMessageTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ source }) => new TextMessageTermination(source),
  });

  readonly #source: string | undefined;

  /**
   * @param source - the agent's name. Default: anyone, including the task's author.
   * @throws InvalidInputError if it is not a string.
   */
  constructor(source?: string) {
    super();
    this.#source = checkOptions(configSchema, { source }, "TextMessageTermination").source;
  }

  override dumpComponent(): ComponentModel {
    return TextMessageTermination.component.dump({ source: this.#source });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(
      ({ type, source }) => type === "TextMessage" && (this.#source === undefined || this.#source === source),
    );
    return found && `"${found.source}" sent a text message.`;
  }
}
