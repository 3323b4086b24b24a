/** Tells that the state from earlier calls is gone: listeners at once, and the next result. */
export class LossReports {
  readonly #listeners = new Set<(reason: string) => unknown>();
  /** There was a loss since the last result. */
  #isPending = false;

  /** Calls `listener` at each loss. Returns a function that ends that. */
  listen(listener: (reason: string) => unknown): () => void {
    // The same function may be given twice.
    const own = (reason: string): unknown => listener(reason);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Call this as soon as the state is gone. */
  tell(reason: string): void {
    this.#isPending = true;
    for (const listener of this.#listeners) {
      try {
        // An error in the application's callback must not end a run or this process.
        const returned = listener(reason);
        if (returned instanceof Promise) returned.catch(() => {});
      } catch {}
    }
  }

  /** Returns whether the next result must report a loss; it is then reported. */
  take(): boolean {
    const isPending = this.#isPending;
    this.#isPending = false;
    return isPending;
  }

  /** Call this if what `take` returned reaches nobody: the next result must report it. */
  putBack(wasPending: boolean): void {
    this.#isPending ||= wasPending;
  }

  /** Call this when the state is discarded on purpose: no result reports what was lost before. */
  forget(): void {
    this.#isPending = false;
  }
}
