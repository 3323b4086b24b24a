/** Keeps copies of the first and the last bytes of an endless stream. Memory grows with what is kept, not with the limits. */
export class HeadAndTail {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = Buffer.alloc(0);
  #headUsed = 0;
  /** A ring once it has `tailLimit` bytes; the oldest byte then stands at `#tailEnd`. */
  #tail = Buffer.alloc(0);
  #tailUsed = 0;
  #tailEnd = 0;
  #total = 0;

  /** @param limits - bytes to keep of each end. */
  constructor(limits: { readonly head: number; readonly tail: number }) {
    this.#headLimit = limits.head;
    this.#tailLimit = limits.tail;
  }

  /** Bytes that came in. */
  get total(): number {
    return this.#total;
  }

  push(bytes: Buffer): void {
    this.#total += bytes.length;
    const room = Math.min(this.#headLimit - this.#headUsed, bytes.length);
    if (room > 0) {
      this.#head = withRoom(this.#head, this.#headUsed, this.#headUsed + room, this.#headLimit);
      bytes.copy(this.#head, this.#headUsed, 0, room);
      this.#headUsed += room;
    }
    if (room < bytes.length) this.#pushTail(bytes.subarray(room));
  }

  /** What is kept, head before tail; all there was if no more than both limits came in. */
  kept(): Buffer {
    const head = this.#head.subarray(0, this.#headUsed);
    if (this.#tailUsed < this.#tailLimit) return Buffer.concat([head, this.#tail.subarray(0, this.#tailUsed)]);
    return Buffer.concat([head, this.#tail.subarray(this.#tailEnd), this.#tail.subarray(0, this.#tailEnd)]);
  }

  #pushTail(bytes: Buffer): void {
    const last = bytes.subarray(Math.max(0, bytes.length - this.#tailLimit));
    if (last.length === 0) return;
    this.#tail = withRoom(
      this.#tail,
      this.#tailUsed,
      Math.min(this.#tailUsed + last.length, this.#tailLimit),
      this.#tailLimit,
    );
    const untilWrap = last.copy(this.#tail, this.#tailEnd);
    last.copy(this.#tail, 0, untilWrap);
    this.#tailUsed = Math.min(this.#tailUsed + last.length, this.#tailLimit);
    this.#tailEnd = (this.#tailEnd + last.length) % this.#tailLimit;
  }
}

/** `buffer` if it has `needed` bytes, else a larger copy of its first `used` bytes. */
function withRoom(buffer: Buffer<ArrayBuffer>, used: number, needed: number, limit: number): Buffer<ArrayBuffer> {
  if (needed <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.min(limit, Math.max(needed, buffer.length * 2, 1024)));
  buffer.copy(larger, 0, 0, used);
  return larger;
}
