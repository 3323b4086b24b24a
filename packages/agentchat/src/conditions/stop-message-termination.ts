import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({});

/** Ends the chat when an agent sends a `StopMessage`. */
export class StopMessageTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<StopMessageTermination> = defineComponent({
    provider: "@fenced/agentchat:StopMessageTermination",
    componentType: "termination",
    schema: configSchema,
    load: () => new StopMessageTermination(),
  });

  override dumpComponent(): ComponentModel {
    return StopMessageTermination.component.dump({});
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(({ type }) => type === "StopMessage");
    return found && `"${found.source}" asked to stop.`;
  }
}
