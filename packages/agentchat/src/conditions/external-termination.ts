import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import * as z from "zod";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({});

/**
 * Ends the chat when the program says so: after the turn that is under way. A later run goes on from there.
 *
 * @example
 * const pause = new ExternalTermination();
 * process.once("SIGINT", () => pause.set());
 */
export class ExternalTermination extends BaseTerminationCondition {
  /** How `loadComponent` makes it. */
  static readonly component: Component<ExternalTermination> = defineComponent({
    provider: "@fenced/agentchat:ExternalTermination",
    componentType: "termination",
    schema: configSchema,
    load: () => new ExternalTermination(),
  });

  #isSet = false;

  /** Asks for the end of the run that is under way. A run that starts later does not see it. */
  set(): void {
    this.#isSet = true;
  }

  override dumpComponent(): ComponentModel {
    return ExternalTermination.component.dump({});
  }

  protected override findReason(): string | undefined {
    return this.#isSet ? "The program asked for the end." : undefined;
  }

  protected override restart(): void {
    this.#isSet = false;
  }
}
