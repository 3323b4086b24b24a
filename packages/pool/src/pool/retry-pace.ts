const firstPauseMs = 100;
const longestPauseMs = 10_000;

/** How soon a start is tried again after starts that failed, so that what is broken is not asked all the time. */
export class RetryPace {
  #failures = 0;
  #lastFailure = -Infinity;

  /** How often a start failed, one after the other; those that were under way together count once. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the next start may be tried. */
  get pauseMs(): number {
    if (this.#failures === 0) return 0;
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 20));
    return Math.max(0, this.#lastFailure + pause - performance.now());
  }

  /** @param begunAt - when the start that failed had begun, on the clock of `performance`. */
  failed(begunAt: number): void {
    if (begunAt >= this.#lastFailure) this.#failures += 1;
    this.#lastFailure = performance.now();
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** What had started is gone again without having been used, which counts as one failure more than there were before it. */
  lostEarly(failuresBefore: number): void {
    this.#failures = Math.max(this.#failures, failuresBefore + 1);
    this.#lastFailure = performance.now();
  }
}
