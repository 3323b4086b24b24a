/** The name of an output stream of a program. */
export type StreamName = "stdout" | "stderr";

/** A stretch of output from one stream. */
export interface Stretch {
  readonly name: StreamName;
  /** Bytes. */
  readonly length: number;
}

/** Remembers in which order two streams arrived, for the first and the last bytes of both together, not the bytes. */
export class ArrivalOrder {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head = new StretchList();
  readonly #tail = new StretchList();
  #total = 0;

  constructor(limits: { readonly head: number; readonly tail: number }) {
    this.#headLimit = limits.head;
    this.#tailLimit = limits.tail;
  }

  /** Bytes that came in. */
  get total(): number {
    return this.#total;
  }

  push(name: StreamName, length: number): void {
    this.#total += length;
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

/** Stretches as bare numbers, standard error's negative: a program may change streams with every byte. */
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

  /** Forgets `count` bytes from the start; none if it is negative. */
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
