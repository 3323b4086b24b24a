import { ByteQueue } from "@fenced/core";

/** What a command has printed since it was last asked for, of which only the end is kept. */
export class RecentOutput {
  readonly #maxBytes: number;
  readonly #bytes = new ByteQueue();
  // All bytes pass through it in order, so a character that arrives in two pieces stays one.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #dropped = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(piece: Uint8Array): void {
    this.#bytes.add(piece);
    // Not for each piece, since what remains may have to be moved.
    if (this.#bytes.length > 2 * this.#maxBytes) this.#cut();
  }

  /** Returns it as text, and forgets it. A note at the beginning tells how much is missing, as `truncateOutput` knows it. */
  take(isLast: boolean): string {
    this.#cut();
    const text = this.#decoder.decode(this.#bytes.take(), { stream: !isLast });
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped === 0 ? text : `[...${dropped} characters truncated from process output...]\n${text}`;
  }

  #cut(): void {
    const surplus = this.#bytes.length - this.#maxBytes;
    if (surplus > 0) this.#dropped += this.#decoder.decode(this.#bytes.take(surplus), { stream: true }).length;
  }
}
