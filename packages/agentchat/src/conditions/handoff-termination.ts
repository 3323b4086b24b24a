import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ target: z.string() });

/** Ends the chat when it is handed to someone, for instance to a person who is not part of the team. */
export class HandoffTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #target: string;

  /** @param target - the name in `HandoffMessage.target`. */
  constructor(target: string) {
    super();
    this.#target = target;
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): HandoffTermination {
    return new HandoffTermination(parseComponentConfig(configSchema, config, context.provider).target);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("HandoffTermination", { target: this.#target });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find((message) => message.type === "HandoffMessage" && message.target === this.#target);
    return found && `"${found.source}" handed the chat to "${this.#target}".`;
  }
}
