import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ name: z.string().min(1) });

/** Ends the chat after the turn in which a tool was called. */
export class FunctionCallTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<FunctionCallTermination> = defineComponent({
    provider: "@fenced/agentchat:FunctionCallTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ name }) => new FunctionCallTermination(name),
  });

  readonly #name: string;

  /**
   * @param name - the tool's name.
   * @throws InvalidInputError if it is not a string, or empty.
   */
  constructor(name: string) {
    super();
    this.#name = checkOptions(configSchema, { name }, "FunctionCallTermination").name;
  }

  override dumpComponent(): ComponentModel {
    return FunctionCallTermination.component.dump({ name: this.#name });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const called = messages.some(
      (message) => message.type === "ToolCallExecutionEvent" && message.content.some(({ name }) => name === this.#name),
    );
    return called ? `The tool "${this.#name}" was called.` : undefined;
  }
}
