/** Runs actions side by side, at most so many at once. */
export class AtOnce {
  readonly #most: number;
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Starts an action when there is room.
   *
   * @throws the error of an earlier action.
   */
  async start(action: () => Promise<void>): Promise<void> {
    while (this.#running.size >= this.#most) await Promise.race(this.#running);
    this.#throwFailure();
    const running = action()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /**
   * Waits for all actions.
   *
   * @throws the first error of one.
   */
  async finish(): Promise<void> {
    await this.settle();
    this.#throwFailure();
  }

  /** Waits for all actions, whatever comes of them. */
  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
