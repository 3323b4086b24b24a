import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import * as z from "zod";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({});

/**
 * Ends the chat when your program calls `set()`, after the current turn. A later run continues from there.
 *
 * @example
 * const pause = new ExternalTermination();
 * process.once("SIGINT", () => pause.set());
 */
export class ExternalTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<ExternalTermination> = defineComponent({
    provider: "@fenced/agentchat:ExternalTermination",
    componentType: "termination",
    schema: configSchema,
    load: () => new ExternalTermination(),
  });

  #isSet = false;

  /** Ends the current run after its current turn. Runs that start later are not affected. */
  set(): void {
    this.#isSet = true;
  }

  override dumpComponent(): ComponentModel {
    return ExternalTermination.component.dump({});
  }

  protected override findReason(): string | undefined {
    return this.#isSet ? "The program ended the chat." : undefined;
  }

  protected override restart(): void {
    this.#isSet = false;
  }
}
