/**
 * How a place is lost: whatever notices it first reports it, what it means is found out once, and everybody learns the
 * same reason.
 */
export class Loss {
  /** Resolves to the reason when the place is lost; never rejects. */
  readonly lost: Promise<Error>;
  readonly #explain: (hint: Error) => Error | Promise<Error>;
  #tell: (reason: Error) => void = () => {};
  #error: Error | undefined;
  #isOver = false;
  #isCancelled = false;

  /**
   * @param explain - finds out why, given what was noticed; must not reject.
   * @param end - called with the reason: fail the programs that run there, and let go of the place.
   */
  constructor(explain: (hint: Error) => Error | Promise<Error>, end: (reason: Error) => void) {
    this.#explain = explain;
    this.lost = new Promise((resolve) => {
      this.#tell = (reason) => {
        // The waiting programs learn it last, so that what they then start goes to another place.
        resolve(reason);
        end(reason);
      };
    });
  }

  /** The reason, if the place is lost. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** True once something has been reported, even if it is not explained yet: `lost` then resolves, unless it is cancelled. */
  get isReported(): boolean {
    return this.#isOver && !this.#isCancelled;
  }

  /** Call this when something shows that the place is lost. Only the first call counts. */
  async report(hint: unknown): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    const reason = await this.#explain(hint instanceof Error ? hint : new Error(String(hint)));
    if (this.#isCancelled) return;
    this.#error = reason;
    this.#tell(reason);
  }

  /** Call this before the place is ended on purpose: it is then not lost. */
  cancel(): void {
    this.#isOver = true;
    this.#isCancelled = true;
  }
}
