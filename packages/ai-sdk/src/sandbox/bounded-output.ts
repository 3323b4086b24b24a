/** Keeps the beginning and the end of an output. */
export class BoundedOutput {
  readonly #most: number;
  readonly #head: Uint8Array[] = [];
  readonly #tail: Uint8Array[] = [];
  #headBytes = 0;
  #tailBytes = 0;
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
    const room = Math.min(bytes.length, this.#most - this.#headBytes);
    if (room > 0) this.#head.push(bytes.slice(0, room));
    this.#headBytes += Math.max(0, room);
    // For a piece larger than everything that is kept, keep only its end.
    const rest = bytes.slice(Math.max(0, room));
    const kept = rest.slice(Math.max(0, rest.length - this.#most));
    this.#dropped += rest.length - kept.length;
    if (kept.length > 0) this.#tail.push(kept);
    this.#tailBytes += kept.length;
    for (let first = this.#tail[0]; first && this.#tailBytes - first.length >= this.#most; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailBytes -= first.length;
      this.#dropped += first.length;
    }
  }

  #text(): string {
    if (this.#dropped === 0) return Buffer.concat([...this.#head, ...this.#tail]).toString();
    const note = `\n[... ${this.#dropped} bytes left out ...]\n`;
    return `${Buffer.concat(this.#head).toString()}${note}${Buffer.concat(this.#tail).toString()}`;
  }
}
