/**
 * Bytes that arrive in pieces, in one piece of memory. A list of the pieces takes hundreds of bytes for each, so a sender
 * who sends a few megabytes one byte at a time could fill the receiver's memory.
 */
export class ByteQueue {
  #memory = new Uint8Array(0);
  #start = 0;
  #end = 0;

  /** The number of bytes that have not been taken. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** Copies a piece to the end. */
  add(piece: Uint8Array): void {
    const wanted = this.length + piece.byteLength;
    if (this.#end + piece.byteLength > this.#memory.byteLength) {
      const rest = this.#memory.subarray(this.#start, this.#end);
      // Half of it must be free, or bytes would be moved too often.
      if (wanted > this.#memory.byteLength / 2) this.#memory = new Uint8Array(Math.max(wanted, 2 * rest.byteLength));
      this.#memory.set(rest);
      [this.#start, this.#end] = [0, rest.byteLength];
    }
    this.#memory.set(piece, this.#end);
    this.#end += piece.byteLength;
  }

  /**
   * Removes bytes from the beginning.
   *
   * @param count - at most as many are returned. Default: all.
   * @returns memory of their own.
   */
  take(count: number = this.length): Uint8Array {
    const start = this.#start;
    this.#start = Math.min(start + count, this.#end);
    const isAll = start === 0 && this.#start === this.#memory.byteLength;
    const taken = isAll ? this.#memory : this.#memory.slice(start, this.#start);
    if (this.length === 0) {
      this.#memory = new Uint8Array(0);
      [this.#start, this.#end] = [0, 0];
    }
    return taken;
  }
}
