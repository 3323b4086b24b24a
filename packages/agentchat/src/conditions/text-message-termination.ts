import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ source: z.string().optional() });

/** Ends the chat when someone, or the agent `source`, says a `TextMessage`. */
export class TextMessageTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #source: string | undefined;

  /** @param source - the agent's name. Default: anyone, the task's author too. */
  constructor(source?: string) {
    super();
    this.#source = source;
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): TextMessageTermination {
    return new TextMessageTermination(parseComponentConfig(configSchema, config, context.provider).source);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("TextMessageTermination", { source: this.#source });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(
      ({ type, source }) => type === "TextMessage" && (this.#source === undefined || this.#source === source),
    );
    return found && `"${found.source}" said something in text.`;
  }
}
