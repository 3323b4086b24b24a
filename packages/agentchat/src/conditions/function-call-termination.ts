import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ name: z.string() });

/** Ends the chat after the turn in which a tool was called. */
export class FunctionCallTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #name: string;

  /** @param name - the tool's name. */
  constructor(name: string) {
    super();
    this.#name = name;
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): FunctionCallTermination {
    return new FunctionCallTermination(parseComponentConfig(configSchema, config, context.provider).name);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("FunctionCallTermination", { name: this.#name });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const called = messages.some(
      (message) => message.type === "ToolCallExecutionEvent" && message.content.some(({ name }) => name === this.#name),
    );
    return called ? `The tool "${this.#name}" was called.` : undefined;
  }
}
