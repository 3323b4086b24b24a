import { ExecutorStoppedError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { checkOptions, type OptionSchemas, optionsSchema } from "@fenced/core/options";
import * as z from "zod";

/** How a drain is done. */
export interface DrainOptions {
  /** Milliseconds that what is under way may go on for. Default: 10,000. */
  readonly graceMs?: number;
}

const drainOptions: z.ZodType<DrainOptions> = optionsSchema({
  graceMs: z
    .custom<number>((value) => typeof value === "number" && value >= 0, "must be a number of milliseconds, at least 0")
    .exactOptional(),
} satisfies OptionSchemas<DrainOptions>);

/** The end of something that is in use: what is new is refused at once, and what is under way may go on for a while. */
export class Drain {
  readonly #begun = new AbortController();
  readonly #onRest: (() => void)[] = [];

  /** Aborted when the drain begins, with the error for what is refused. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  /**
   * Begins it, and waits until `rested` is called, or the grace is over. It may be called again.
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

  /** To be called whenever nothing is under way. */
  rested(): void {
    for (const resolve of this.#onRest.splice(0)) resolve();
  }
}
