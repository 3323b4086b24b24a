interface Waiting<Item> {
  readonly resolve: (item: Item) => void;
  readonly reject: (reason: unknown) => void;
}

/** Those who wait for something; first come, first served. What is given to one of them is theirs: an abort comes before, or too late. */
export class WaitingLine<Item> {
  readonly #waiting = new Set<Waiting<Item>>();

  /** How many wait. */
  get length(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for its turn.
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

  /** Gives what `make` makes to the one that waits longest. @returns false if nobody waits; then nothing is made. */
  give(make: () => Item): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    this.#waiting.delete(first);
    first.resolve(make());
    return true;
  }

  /** Sends all away with an error. */
  refuse(reason: unknown): void {
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting.clear();
  }
}
