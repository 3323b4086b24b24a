import { ByteQueue } from "./byte-queue.ts";

/** Keeps the beginning and the end of an output that may be endless. */
export class BoundedOutput {
  readonly #most: number;
  readonly #head = new ByteQueue();
  readonly #tail = new ByteQueue();
  #dropped = 0;

  private constructor(maxBytes: number) {
    this.#most = Math.ceil(maxBytes / 2);
  }

  /** Reads a stream to its end and returns text of about `maxBytes` bytes, with a note about what was left out. */
  static async read(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<string> {
    const output = new BoundedOutput(maxBytes);
    for await (const bytes of stream) output.#push(bytes);
    return output.#text();
  }

  #push(bytes: Uint8Array): void {
    const room = Math.min(bytes.length, this.#most - this.#head.length);
    this.#head.add(bytes.subarray(0, room));
    this.#tail.add(bytes.subarray(room));
    // Not for each piece, since what remains may have to be moved.
    if (this.#tail.length > 2 * this.#most) this.#cut();
  }

  #cut(): void {
    const surplus = Math.max(0, this.#tail.length - this.#most);
    this.#tail.take(surplus);
    this.#dropped += surplus;
  }

  #text(): string {
    this.#cut();
    const [head, tail] = [this.#head.take(), this.#tail.take()];
    if (this.#dropped === 0) return Buffer.concat([head, tail]).toString();
    const note = `\n[... ${this.#dropped} bytes left out ...]\n`;
    return `${Buffer.from(head).toString()}${note}${Buffer.from(tail).toString()}`;
  }
}
