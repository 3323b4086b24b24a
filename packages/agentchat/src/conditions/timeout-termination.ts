import {
  type ComponentContext,
  type ComponentModel,
  InvalidInputError,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ timeoutMs: z.number() });

/**
 * Ends the chat when a run has taken some time. It is looked at between turns and does not interrupt one: for that,
 * give the run an `AbortSignal.timeout()`.
 */
export class TimeoutTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #timeoutMs: number;
  #start = performance.now();

  /**
   * @param timeoutMs - milliseconds from the start of the run.
   * @throws InvalidInputError if it is not a positive number.
   */
  constructor(timeoutMs: number) {
    super();
    if (!(timeoutMs > 0)) {
      throw new InvalidInputError(`timeoutMs is ${timeoutMs}`, { remedy: "Use a positive number of milliseconds." });
    }
    this.#timeoutMs = timeoutMs;
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): TimeoutTermination {
    return new TimeoutTermination(parseComponentConfig(configSchema, config, context.provider).timeoutMs);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("TimeoutTermination", { timeoutMs: this.#timeoutMs });
  }

  protected override findReason(): string | undefined {
    if (performance.now() - this.#start < this.#timeoutMs) return undefined;
    return `The time limit of ${this.#timeoutMs} ms is reached.`;
  }

  protected override restart(): void {
    this.#start = performance.now();
  }
}
