const firstPauseMs = 100;
const longestPauseMs = 10_000;

/** How soon to retry after failed starts, so that a broken backend is not called constantly. */
export class RetryPace {
  #failures = 0;
  #lastFailure = -Infinity;

  /** Number of consecutive failed starts; starts that ran concurrently count once. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the next start may be tried. */
  get pauseMs(): number {
    if (this.#failures === 0) return 0;
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 20));
    return Math.max(0, this.#lastFailure + pause - performance.now());
  }

  /** @param begunAt - when the failed start began, in terms of `performance.now()`. */
  failed(begunAt: number): void {
    if (begunAt >= this.#lastFailure) this.#failures += 1;
    this.#lastFailure = performance.now();
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** An executor was lost before its first use, which counts as one failure more than there were before it started. */
  lostEarly(failuresBefore: number): void {
    this.#failures = Math.max(this.#failures, failuresBefore + 1);
    this.#lastFailure = performance.now();
  }
}
