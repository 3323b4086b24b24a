interface Waiting<Item> {
  readonly resolve: (item: Item) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Callers that are waiting for something, in order of arrival. Once a caller has been given an item, an abort comes too
 * late.
 */
export class WaitingLine<Item> {
  readonly #waiting = new Set<Waiting<Item>>();

  /** Number of waiting callers. */
  get length(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for an item.
   *
   * @throws `signal.reason` if the signal is aborted first.
   */
  async wait(signal: AbortSignal | undefined): Promise<Item> {
    signal?.throwIfAborted();
    let leave: () => void = () => {};
    try {
      return await new Promise<Item>((resolve, reject) => {
        const waiting = { resolve, reject };
        leave = () => {
          // The reason is whatever the caller chose.
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors
          if (this.#waiting.delete(waiting)) reject(signal?.reason);
        };
        this.#waiting.add(waiting);
        signal?.addEventListener("abort", leave, { once: true });
      });
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  /**
   * Gives the result of `make` to the caller that has waited longest. @returns false if no one is waiting; `make` is
   * then not called.
   */
  give(make: () => Item): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    this.#waiting.delete(first);
    first.resolve(make());
    return true;
  }

  /** Rejects all waiting callers. */
  refuse(reason: unknown): void {
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting.clear();
  }
}
