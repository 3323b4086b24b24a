/** Joins the parts of something that arrives in several frames. What sends them may be forged, so it is bounded. */
export class Parts {
  readonly #most: number;
  #parts: Buffer[] = [];
  #size = 0;

  /** @param most - bytes of all parts together. */
  constructor(most: number) {
    this.#most = most;
  }

  /** @throws Error if there is too much. */
  add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#most) throw new Error(`the supervisor sent something of more than ${this.#most} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }

  /** Returns all of it, and begins anew. */
  take(): Buffer {
    const [first, ...others] = this.#parts;
    this.#parts = [];
    this.#size = 0;
    if (first === undefined) return Buffer.alloc(0);
    return others.length === 0 ? first : Buffer.concat([first, ...others]);
  }
}
