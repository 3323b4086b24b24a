import { afterMs, followSignals } from "@fenced/core/abort";
import { timeIsUp } from "./block-run.ts";

/**
 * What ends the programs of a call before they end by themselves: signals, which reject the call, and time limits, after
 * which the outcome is still reported.
 */
export class RunEnd {
  readonly #rejecting = new AbortController();
  readonly #unfollow: () => void;
  #ending = new AbortController();

  /**
   * @param signals - reject the call with their reason.
   * @param onReject - called when the first of them aborts.
   */
  constructor(signals: readonly (AbortSignal | undefined)[], onReject: () => void = () => {}) {
    const { signal } = this.#rejecting;
    signal.addEventListener("abort", () => {
      onReject();
      this.#ending.abort(signal.reason);
    });
    this.#unfollow = followSignals(this.#rejecting, signals);
  }

  /** Ends what is running now, with `timeIsUp` if its outcome will be reported. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** True once nobody will get the call's result. */
  get isRejected(): boolean {
    return this.#rejecting.signal.aborted;
  }

  throwIfRejected(): void {
    this.#rejecting.signal.throwIfAborted();
  }

  /**
   * Limits the time of what runs next; a limit that ran out when it had just ended is forgotten.
   *
   * @param onEnd - called when it ran out, unless it has been ended already.
   * @returns a function that lifts the limit.
   */
  after(milliseconds: number, onEnd: () => void = () => {}): () => void {
    if (this.#ending.signal.aborted && !this.isRejected) this.#ending = new AbortController();
    const ending = this.#ending;
    return afterMs(milliseconds, () => {
      if (!ending.signal.aborted) onEnd();
      ending.abort(timeIsUp);
    });
  }

  /** Call this when the call is over. */
  settle(): void {
    this.#unfollow();
  }
}
