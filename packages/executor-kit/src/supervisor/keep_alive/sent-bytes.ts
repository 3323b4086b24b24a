/** Bytes that are to arrive, in pieces that are sent one after another, and again over another connection. */
export class SentBytes {
  /** How many bytes there were before the first one that is kept. */
  #start = 0;
  #pieces: Buffer[] = [];
  #kept = 0;
  /** What to send next: a piece, how far into it, and how many bytes precede it. */
  #next = { piece: 0, at: 0, sent: 0 };

  /** How many have not arrived, or not been sent. */
  get kept(): number {
    return this.#kept;
  }

  /** How many have been sent over this connection, and not arrived. */
  get underWay(): number {
    return this.#next.sent;
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
    const next = this.#next;
    next.sent -= gone;
    for (const piece of this.#pieces) {
      if (piece.length > gone) break;
      gone -= piece.length;
      whole += 1;
    }
    this.#pieces.splice(0, whole);
    next.piece -= whole;
    const [first] = this.#pieces;
    if (first && gone > 0) {
      this.#pieces[0] = first.subarray(gone);
      if (next.piece === 0) next.at -= gone;
    }
    // More has arrived than was sent over this connection.
    if (next.sent < 0 || next.piece < 0 || next.at < 0) this.rewind();
  }

  /** Returns the next bytes to send, at most so many; `undefined` if all have been sent. */
  next(most: number): Buffer | undefined {
    const next = this.#next;
    const piece = this.#pieces[next.piece];
    if (!piece) return undefined;
    const bytes = piece.subarray(next.at, next.at + most);
    next.sent += bytes.length;
    next.at += bytes.length;
    if (next.at === piece.length) {
      next.piece += 1;
      next.at = 0;
    }
    return bytes;
  }

  /** Sends everything again that is kept. */
  rewind(): void {
    this.#next = { piece: 0, at: 0, sent: 0 };
  }
}
