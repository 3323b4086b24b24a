/** Maximum number of bytes in transit that the program has not accepted yet. */
const windowBytes = 262_144;

/** Sends a program's input as it comes, no faster than the program accepts it. */
export class ProgramFeed {
  readonly #pieces: AsyncIterator<Uint8Array, unknown>;
  readonly #send: (piece?: Uint8Array) => void;
  #onTheWay = 0;
  #closed = false;
  #wake: () => void = () => {};

  /** @param send - sends a piece, or the end of the input. */
  constructor(pieces: AsyncIterable<Uint8Array>, send: (piece?: Uint8Array) => void) {
    this.#pieces = pieces[Symbol.asyncIterator]();
    this.#send = send;
  }

  /** Sends everything. Resolves when the input ends or is closed; input that throws counts as ended. */
  async run(): Promise<void> {
    try {
      for (;;) {
        const next = await this.#pieces.next();
        if (next.done === true) break;
        for (let at = 0; at < next.value.length;) {
          await this.#room();
          if (this.#closed) return;
          const piece = next.value.subarray(at, at + windowBytes - this.#onTheWay);
          this.#onTheWay += piece.length;
          this.#send(piece);
          at += piece.length;
        }
      }
    } catch {
      // Treated like any other end of the input.
    }
    if (!this.#closed) this.#send();
  }

  /**
   * Call this when the program has accepted more bytes.
   *
   * @throws Error if that is more than was sent.
   */
  taken(bytes: number): void {
    this.#onTheWay -= bytes;
    if (this.#onTheWay < 0) throw new Error("the supervisor reports more input than it got");
    this.#wake();
  }

  /** Call this when the program reads no more. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
    this.#pieces.return?.().catch(() => {});
  }

  async #room(): Promise<void> {
    while (!this.#closed && this.#onTheWay >= windowBytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
