/** The name of an output stream of a program. */
export type StreamName = "stdout" | "stderr";

/** A stretch of output from one stream. */
export interface Stretch {
  readonly name: StreamName;
  /** Length in bytes. */
  readonly length: number;
}

/** Records the order in which the first and last bytes of two streams arrived, but not the bytes themselves. */
export class ArrivalOrder {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head = new StretchList();
  readonly #tail = new StretchList();

  constructor(limits: { readonly head: number; readonly tail: number }) {
    this.#headLimit = limits.head;
    this.#tailLimit = limits.tail;
  }

  push(name: StreamName, length: number): void {
    const room = Math.min(this.#headLimit - this.#head.length, length);
    this.#head.push(name, room);
    this.#tail.push(name, length - room);
    this.#tail.dropFirst(this.#tail.length - this.#tailLimit);
  }

  head(): Stretch[] {
    return this.#head.toArray();
  }

  tail(): Stretch[] {
    return this.#tail.toArray();
  }
}

/** Stretches as plain numbers, negative for standard error, because a program may switch streams with every byte. */
class StretchList {
  #signed: number[] = [];
  #first = 0;
  length = 0;

  push(name: StreamName, length: number): void {
    if (length <= 0) return;
    const signed = name === "stdout" ? length : -length;
    const last = this.#signed.length - 1;
    const before = this.#signed[last] ?? 0;
    if (last >= this.#first && before * signed > 0) this.#signed[last] = before + signed;
    else this.#signed.push(signed);
    this.length += length;
  }

  /** Drops `count` bytes from the start; none if it is negative. */
  dropFirst(count: number): void {
    for (let left = count; left > 0;) {
      const oldest = this.#signed[this.#first] ?? 0;
      const taken = Math.min(Math.abs(oldest), left);
      if (taken === Math.abs(oldest)) this.#first += 1;
      else this.#signed[this.#first] = oldest - Math.sign(oldest) * taken;
      left -= taken;
      this.length -= taken;
    }
    if (this.#first > 1024 && this.#first * 2 > this.#signed.length) {
      this.#signed = this.#signed.slice(this.#first);
      this.#first = 0;
    }
  }

  toArray(): Stretch[] {
    return this.#signed
      .slice(this.#first)
      .map((signed) => ({ name: signed > 0 ? "stdout" : "stderr", length: Math.abs(signed) }));
  }
}

/**
 * Keeps copies of the first and last bytes of an endless stream. Memory grows with what is kept, not with the limits.
 */
export class HeadAndTail {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = Buffer.alloc(0);
  #headUsed = 0;
  /** A ring once it has `tailLimit` bytes; the oldest byte is then at `#tailEnd`. */
  #tail = Buffer.alloc(0);
  #tailUsed = 0;
  #tailEnd = 0;
  #total = 0;

  /** @param limits - bytes to keep of each end. */
  constructor(limits: { readonly head: number; readonly tail: number }) {
    this.#headLimit = limits.head;
    this.#tailLimit = limits.tail;
  }

  /** Number of bytes received. */
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

  /** What is kept, head before tail; everything if no more than both limits was received. */
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

/** Returns `buffer` if it has `needed` bytes, otherwise a larger copy of its first `used` bytes. */
function withRoom(buffer: Buffer<ArrayBuffer>, used: number, needed: number, limit: number): Buffer<ArrayBuffer> {
  if (needed <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.min(limit, Math.max(needed, buffer.length * 2, 1024)));
  buffer.copy(larger, 0, 0, used);
  return larger;
}
