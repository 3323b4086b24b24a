/** Bytes that were sent and may not have arrived yet. */
export class SentBytes {
  /** How many bytes there were before the first one that is kept. */
  #start = 0;
  #pieces: Buffer[] = [];
  #kept = 0;

  /** How many are kept. */
  get kept(): number {
    return this.#kept;
  }

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(bytes);
    this.#kept += bytes.length;
  }

  /** Forgets what has arrived: the first `count` of all. */
  received(count: number): void {
    let gone = Math.min(count - this.#start, this.#kept);
    if (gone <= 0) return;
    this.#start += gone;
    this.#kept -= gone;
    let whole = 0;
    for (const piece of this.#pieces) {
      if (piece.length > gone) break;
      gone -= piece.length;
      whole += 1;
    }
    this.#pieces.splice(0, whole);
    const [first] = this.#pieces;
    if (first && gone > 0) this.#pieces[0] = first.subarray(gone);
  }

  /** Returns all that are kept, in pieces of at most `most` bytes. */
  *pieces(most: number): Generator<Buffer, void, void> {
    for (const piece of this.#pieces) {
      for (let at = 0; at < piece.length; at += most) yield piece.subarray(at, at + most);
    }
  }
}
