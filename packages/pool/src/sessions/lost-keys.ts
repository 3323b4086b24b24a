/** How many keys to remember. */
const most = 10_000;

/** Keys whose session was lost unexpectedly and whose callers have not been told; forgets the oldest. */
export class LostKeys {
  readonly #keys = new Set<string>();

  add(key: string): void {
    this.#keys.delete(key);
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (oldest !== undefined && this.#keys.size > most) this.#keys.delete(oldest);
  }

  /** @returns whether the key was recorded. */
  take(key: string): boolean {
    return this.#keys.delete(key);
  }
}
