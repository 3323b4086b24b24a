import { QuotaExceededError } from "@fenced/core";
import { WaitingLine } from "../waiting-line.ts";

/** Lets a limited number of callers run at a time and a limited number wait, in order of arrival. */
export class Turns {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #line = new WaitingLine<void>();
  #taken = 0;

  constructor({ atOnce, maxWaiting }: { readonly atOnce: number; readonly maxWaiting: number }) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
  }

  /** Number of turns in use. */
  get taken(): number {
    return this.#taken;
  }

  /** Number of waiting callers. */
  get waiting(): number {
    return this.#line.length;
  }

  /** @throws QuotaExceededError if one more caller can neither run nor wait. */
  checkRoom(): void {
    if (this.#taken < this.#atOnce || this.#line.length < this.#maxWaiting) return;
    throw new QuotaExceededError(`This session has ${this.#taken} running calls, and ${this.#line.length} waiting`, {
      remedy: "Try again when one of them has ended, or raise maxRunningPerKey or maxWaiting.",
    });
  }

  /**
   * Takes a turn.
   *
   * @returns a function that ends the turn; call it once.
   * @throws QuotaExceededError at once if one more caller can neither run nor wait.
   * @throws `signal.reason` if the signal was aborted while it waited.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    this.checkRoom();
    if (this.#taken < this.#atOnce) this.#taken += 1;
    else await this.#line.wait(signal);
    return () => {
      // The turn passes to the caller that has waited longest.
      if (!this.#line.give(() => {})) this.#taken -= 1;
    };
  }
}
