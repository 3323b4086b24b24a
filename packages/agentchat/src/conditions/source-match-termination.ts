import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ sources: z.array(z.string()) });

/** Ends the chat after one of some agents has had its turn. */
export class SourceMatchTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #sources: readonly string[];

  /** @param sources - the agent's name, or several. */
  constructor(sources: string | readonly string[]) {
    super();
    this.#sources = typeof sources === "string" ? [sources] : [...sources];
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): SourceMatchTermination {
    return new SourceMatchTermination(parseComponentConfig(configSchema, config, context.provider).sources);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("SourceMatchTermination", { sources: this.#sources });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(({ source }) => this.#sources.includes(source));
    return found && `"${found.source}" has spoken.`;
  }
}
