/** What one request holds of its user's share. */
export interface HeldBody {
  /** Counts bytes that have arrived. @returns false if the user has no room for them. */
  readonly add: (bytes: number) => boolean;
  /** Gives up the share, once the response is over. Idempotent. */
  readonly release: () => void;
}

/**
 * Limits what the bodies of a user's requests take in memory, whether they are still arriving or their code runs: one
 * request may be large, but not hundreds at a time.
 */
export class HeldBodies<User> {
  readonly #maxBytes: number;
  readonly #isSame: (one: User, other: User) => boolean;
  readonly #held = new Set<{ readonly user: User; bytes: number }>();

  constructor(maxBytes: number, isSame: (one: User, other: User) => boolean) {
    this.#maxBytes = maxBytes;
    this.#isSame = isSame;
  }

  hold(user: User): HeldBody {
    const body = { user, bytes: 0 };
    return {
      add: (bytes) => {
        let total = bytes;
        for (const other of this.#held) if (this.#isSame(other.user, user)) total += other.bytes;
        if (total > this.#maxBytes) return false;
        body.bytes += bytes;
        this.#held.add(body);
        return true;
      },
      release: () => void this.#held.delete(body),
    };
  }
}
