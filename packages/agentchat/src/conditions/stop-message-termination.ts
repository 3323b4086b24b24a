import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({});

/** Ends the chat when an agent says a `StopMessage`. */
export class StopMessageTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): StopMessageTermination {
    parseComponentConfig(configSchema, config, context.provider);
    return new StopMessageTermination();
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("StopMessageTermination", {});
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(({ type }) => type === "StopMessage");
    return found && `"${found.source}" asked to stop.`;
  }
}
