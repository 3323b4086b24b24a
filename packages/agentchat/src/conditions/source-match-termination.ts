import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ sources: z.array(z.string()) });

/** Ends the chat after one of the given agents has had its turn. */
export class SourceMatchTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<SourceMatchTermination> = defineComponent({
    provider: "@fenced/agentchat:SourceMatchTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ sources }) => new SourceMatchTermination(sources),
  });

  readonly #sources: readonly string[];

  /**
   * @param sources - one or more agent names.
   * @throws InvalidInputError if it is not a string or a list of strings.
   */
  constructor(sources: string | readonly string[]) {
    super();
    const list = typeof sources === "string" ? [sources] : sources;
    this.#sources = checkOptions(configSchema, { sources: list }, "SourceMatchTermination").sources;
  }

  override dumpComponent(): ComponentModel {
    return SourceMatchTermination.component.dump({ sources: this.#sources });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find(({ source }) => this.#sources.includes(source));
    return found && `"${found.source}" has spoken.`;
  }
}
