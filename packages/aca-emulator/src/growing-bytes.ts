/**
 * Bytes that arrive in pieces, in one piece of memory. A list of the pieces takes hundreds of bytes for each, so a sender
 * who sends a few megabytes one byte at a time could fill the memory.
 */
export class GrowingBytes {
  #memory = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Copies a piece to the end. */
  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#memory.length) {
      const larger = Buffer.alloc(Math.max(length, 2 * this.#memory.length));
      this.#memory.copy(larger, 0, 0, this.#length);
      this.#memory = larger;
    }
    this.#memory.set(piece, this.#length);
    this.#length = length;
  }

  /** Returns everything, and forgets it. */
  take(): Buffer {
    const taken = this.#memory.subarray(0, this.#length);
    this.#memory = Buffer.alloc(0);
    this.#length = 0;
    return taken;
  }
}
