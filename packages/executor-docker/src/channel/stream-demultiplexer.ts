const headerSize = 8;

/**
 * Takes Docker's stream of standard output and standard error apart: each piece is preceded by its stream (1 byte: 1 or
 * 2), three zeros, and its length (4 bytes, big-endian). Pieces may be cut anywhere.
 */
export class StreamDemultiplexer {
  readonly #take: (stream: "stdout" | "stderr", bytes: Buffer) => void;
  readonly #header = Buffer.alloc(headerSize);
  #headerUsed = 0;
  #left = 0;

  constructor(take: (stream: "stdout" | "stderr", bytes: Buffer) => void) {
    this.#take = take;
  }

  push(chunk: Buffer): void {
    for (let rest = chunk; rest.length > 0;) {
      if (this.#left > 0) {
        const piece = rest.subarray(0, this.#left);
        this.#left -= piece.length;
        rest = rest.subarray(piece.length);
        this.#take(this.#header[0] === 2 ? "stderr" : "stdout", piece);
      } else {
        const taken = rest.copy(this.#header, this.#headerUsed);
        this.#headerUsed += taken;
        rest = rest.subarray(taken);
        if (this.#headerUsed < headerSize) return;
        this.#headerUsed = 0;
        this.#left = this.#header.readUInt32BE(4);
      }
    }
  }
}
