import { QuotaExceededError } from "@fenced/core";
import { WaitingLine } from "../waiting-line.ts";

/** So many at a time, and so many that wait; first come, first served. */
export class Turns {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #line = new WaitingLine<void>();
  #taken = 0;

  constructor({ atOnce, maxWaiting }: { readonly atOnce: number; readonly maxWaiting: number }) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
  }

  /** How many have their turn. */
  get taken(): number {
    return this.#taken;
  }

  /** How many wait for one. */
  get waiting(): number {
    return this.#line.length;
  }

  /** @throws QuotaExceededError if one more can neither run nor wait. */
  checkRoom(): void {
    if (this.#taken < this.#atOnce || this.#line.length < this.#maxWaiting) return;
    throw new QuotaExceededError(`This session has ${this.#taken} runs under way, and ${this.#line.length} that wait`, {
      remedy: "Try again when one of them has ended, or raise maxRunningPerKey or maxWaiting.",
    });
  }

  /**
   * Takes a turn.
   *
   * @returns what ends it; to be called once.
   * @throws QuotaExceededError at once if one more can neither run nor wait.
   * @throws `signal.reason` if the signal was aborted while it waited.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    this.checkRoom();
    if (this.#taken < this.#atOnce) this.#taken += 1;
    else await this.#line.wait(signal);
    return () => this.#pass();
  }

  /** Gives the turn to the one that waits longest. */
  #pass(): void {
    if (!this.#line.give(() => {})) this.#taken -= 1;
  }
}
