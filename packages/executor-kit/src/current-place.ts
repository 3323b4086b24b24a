import { ExecutorStoppedError } from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { type Backend, type Place, type PlaceEnd, PlaceGone } from "./place.ts";

/** A place that is being opened, for everybody who waits for it. */
interface PlaceOpening<P> {
  /** Settles when it is open, or everything that was done for it is undone. */
  readonly opened: Promise<P>;
  /** Ends it; aborted when nobody waits any more. */
  readonly abandoning: AbortController;
  waiting: number;
}

/**
 * A backend's current place: opens it, keeps it, and replaces it when it is needed again after it was lost. The only
 * code that knows whether a place can be used.
 */
export class CurrentPlace<P extends Place = Place> {
  readonly #backend: Backend<P>;
  readonly #onLost: (reason: string) => void;
  readonly #closing = new AbortController();
  #last: P | undefined;
  #isUsable = false;
  /** Another program has the place now, so there will be none here. */
  #takenOver: Error | undefined;
  #opening: PlaceOpening<P> | undefined;
  #isStopping = false;
  #isResetting = false;

  /** @param onLost - called at once when the place was lost, with the reason. */
  constructor(backend: Backend<P>, onLost: (reason: string) => void) {
    this.#backend = backend;
    this.#onLost = onLost;
  }

  /** The place, if it can be used now, without a wait. */
  get usable(): P | undefined {
    return this.#isUsable ? this.#last : undefined;
  }

  /** The place that was opened last, even if it is lost; `undefined` before the first one and after the last. */
  get last(): P | undefined {
    return this.#last;
  }

  /**
   * Returns the place, or opens another one if it was lost. It goes on opening as long as somebody waits for it.
   *
   * @throws BackendUnavailableError if that does not open; `signal.reason` if it is aborted first.
   */
  async ready(signal: AbortSignal): Promise<P> {
    this.#closing.signal.throwIfAborted();
    if (this.#takenOver) throw this.#takenOver;
    if (this.usable) return this.usable;
    return this.#replace(signal, false);
  }

  /** Discards variables and ends all processes, in the same place if that is possible. */
  async reset(signal: AbortSignal): Promise<void> {
    await this.#opening?.opened.catch(() => {});
    if (this.#takenOver) throw this.#takenOver;
    const place = this.usable;
    if (place?.reset) {
      this.#isResetting = true;
      try {
        await place.reset(signal);
        return;
      } catch (error) {
        if (!(error instanceof PlaceGone)) throw error;
      } finally {
        this.#isResetting = false;
      }
    }
    this.#isUsable = false;
    await this.#replace(signal, true);
  }

  /** Call this if the place turned out to be gone before `lost` said so. */
  giveUp(place: Place, reason: string): void {
    if (this.usable !== place) return;
    this.#isUsable = false;
    // A reset discards the variables anyway.
    if (!this.#isStopping && !this.#isResetting) this.#onLost(reason);
  }

  /** Call this before `close`, while blocks may still be ending. */
  stopping(isDetached = false): void {
    this.#isStopping = true;
    this.#last?.stopping?.(isDetached);
  }

  /**
   * Ends the place and the backend.
   *
   * @param isDetached - the place goes on, for another program.
   */
  async close(isDetached = false): Promise<void> {
    this.#isStopping = true;
    this.#closing.abort(new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." }));
    await this.#opening?.opened.catch(() => {});
    const last = this.#last;
    this.#last = undefined;
    const end: PlaceEnd = { isReplaced: false, ...(isDetached && { isDetached }) };
    try {
      await last?.end(end);
    } finally {
      await this.#backend.close(end);
    }
  }

  async #replace(signal: AbortSignal, isRestart: boolean): Promise<P> {
    signal.throwIfAborted();
    // What everybody has left is being undone.
    while (this.#opening?.abandoning.signal.aborted === true) {
      await untilAborted(
        this.#opening.opened.catch(() => {}),
        signal,
      );
    }
    const opening = (this.#opening ??= this.#begin(isRestart));
    opening.waiting += 1;
    try {
      return await untilAborted(opening.opened, signal);
    } finally {
      opening.waiting -= 1;
      if (signal.aborted && opening.waiting === 0) opening.abandoning.abort(signal.reason);
    }
  }

  #begin(isRestart: boolean): PlaceOpening<P> {
    const abandoning = new AbortController();
    const unfollow = followSignals(abandoning, [this.#closing.signal]);
    const opened = this.#open(abandoning.signal, isRestart).finally(() => {
      unfollow();
      this.#opening = undefined;
    });
    return { opened, abandoning, waiting: 0 };
  }

  async #open(signal: AbortSignal, isRestart: boolean): Promise<P> {
    if (this.#last) await untilAborted(this.#last.end({ isReplaced: true }), signal);
    signal.throwIfAborted();
    const place = await this.#backend.open({ signal, isRestart });
    this.#last = place;
    this.#isUsable = true;
    void place.lost?.then((reason) => {
      const isTaken = ExecutorStoppedError.isInstance(reason) && place.facts.capabilities?.keepAlive === true;
      if (isTaken && !this.#isStopping) this.#takenOver = reason;
      this.giveUp(place, reason.message);
    });
    return place;
  }
}
