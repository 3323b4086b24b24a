import { type ComponentContext, type ComponentModel, type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({});

/**
 * Ends the chat when the program says so: after the turn that is under way. A later run goes on from there.
 *
 * @example
 * const pause = new ExternalTermination();
 * process.once("SIGINT", () => pause.set());
 */
export class ExternalTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  #isSet = false;

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): ExternalTermination {
    parseComponentConfig(configSchema, config, context.provider);
    return new ExternalTermination();
  }

  /** Asks for the end. Heeded while a run is under way: a run that starts later begins afresh. */
  set(): void {
    this.#isSet = true;
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("ExternalTermination", {});
  }

  protected override findReason(): string | undefined {
    return this.#isSet ? "The program asked for the end." : undefined;
  }

  protected override restart(): void {
    this.#isSet = false;
  }
}
