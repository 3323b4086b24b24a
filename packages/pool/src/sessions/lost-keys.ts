/** Keys whose session was lost unexpectedly and whose callers have not been told; forgets the oldest. */
export class LostKeys {
  readonly #keys = new Set<string>();
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  add(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    for (const oldest of this.#keys) {
      if (this.#keys.size <= this.#most) break;
      this.#keys.delete(oldest);
    }
  }

  /** @returns whether the key was recorded. */
  take(key: string): boolean {
    return this.#keys.delete(key);
  }
}
