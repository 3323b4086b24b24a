import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions, timeLimitOption } from "@fenced/core/options";
import * as z from "zod";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({ timeoutMs: timeLimitOption });

/**
 * Ends the chat when a run has taken a given time. Checked between turns; to interrupt a turn, pass the run an
 * `AbortSignal.timeout()`.
 */
export class TimeoutTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<TimeoutTermination> = defineComponent({
    provider: "@fenced/agentchat:TimeoutTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ timeoutMs }) => new TimeoutTermination(timeoutMs),
  });

  readonly #timeoutMs: number;
  #start = performance.now();

  /**
   * @param timeoutMs - milliseconds from the start of the run.
   * @throws InvalidInputError if it is not a positive number.
   */
  constructor(timeoutMs: number) {
    super();
    this.#timeoutMs = checkOptions(configSchema, { timeoutMs }, "TimeoutTermination").timeoutMs;
  }

  override dumpComponent(): ComponentModel {
    return TimeoutTermination.component.dump({ timeoutMs: this.#timeoutMs });
  }

  protected override findReason(): string | undefined {
    if (performance.now() - this.#start < this.#timeoutMs) return undefined;
    return `The time limit of ${this.#timeoutMs} ms is reached.`;
  }

  protected override restart(): void {
    this.#start = performance.now();
  }
}
