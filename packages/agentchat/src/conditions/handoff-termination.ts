import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ target: z.string().min(1) });

/** Ends the chat when it is handed to `target`, for example to a person outside the team. */
export class HandoffTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<HandoffTermination> = defineComponent({
    provider: "@fenced/agentchat:HandoffTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ target }) => new HandoffTermination(target),
  });

  readonly #target: string;

  /**
   * @param target - the name in `HandoffMessage.target`.
   * @throws InvalidInputError if it is not a string, or empty.
   */
  constructor(target: string) {
    super();
    this.#target = checkOptions(configSchema, { target }, "HandoffTermination").target;
  }

  override dumpComponent(): ComponentModel {
    return HandoffTermination.component.dump({ target: this.#target });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find((message) => message.type === "HandoffMessage" && message.target === this.#target);
    return found && `"${found.source}" handed the chat to "${this.#target}".`;
  }
}
