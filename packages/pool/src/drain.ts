import { ExecutorStoppedError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { checkOptions, type OptionSchemas, optionsSchema } from "@fenced/core/options";
import * as z from "zod";

/** Options of `drain()`. */
export interface DrainOptions {
  /** Grace period for work in progress in milliseconds. Default: 10,000. */
  readonly graceMs?: number | undefined;
}

const drainOptions: z.ZodType<DrainOptions> = optionsSchema({
  graceMs: z
    .custom<number>((value) => typeof value === "number" && value >= 0, "must be a number of milliseconds, at least 0")
    .exactOptional(),
} satisfies OptionSchemas<DrainOptions>);

/** Shuts down something that is in use: refuses new work at once, and gives work in progress a grace period. */
export class Drain {
  readonly #begun = new AbortController();
  readonly #onRest: (() => void)[] = [];

  /** Aborted when the drain begins, with the error for refused work. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  /**
   * Starts the drain, and waits until `rested` is called or the grace period is over. Can be called again.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  async begin(options: DrainOptions): Promise<void> {
    const { graceMs = 10_000 } = checkOptions(drainOptions, options, "drain");
    this.#begun.abort(new ExecutorStoppedError("The service is shutting down", { remedy: "Try again later." }));
    const rested = new Promise<void>((resolve) => {
      this.#onRest.push(resolve);
    });
    await within(graceMs, rested);
  }

  /** Call this whenever nothing is in progress. */
  rested(): void {
    for (const resolve of this.#onRest.splice(0)) resolve();
  }
}
