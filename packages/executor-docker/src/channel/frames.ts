import type { SharedMemory } from "./read-buffers.ts";

/** What a frame between host and supervisor is about. Host to container up to 15, back from 16. */
export const frameType = {
  run: 1,
  input: 2,
  kill: 3,
  credit: 4,
  reset: 5,
  hello: 16,
  stdout: 17,
  stderr: 18,
  exit: 19,
  done: 20,
} as const;

/** What comes before the first frame to the container. */
export const hostMagic = "FENCED-HOST\n";

/** Length (4 bytes, of all that follows), type (1), block number (4), all big-endian. */
const headerSize = 9;
/** No report of the supervisor is longer; something else writes to its output. */
const longestReport = 1_048_576;

/** A frame as bytes. */
export function encodeFrame(type: number, block: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const frame = Buffer.allocUnsafe(headerSize + payload.length);
  frame.writeUInt32BE(payload.length + headerSize - 4, 0);
  frame.writeUInt8(type, 4);
  frame.writeUInt32BE(block, 5);
  frame.set(payload, headerSize);
  return frame;
}

/** Who takes what a `FrameReader` reads. */
export interface FrameConsumer {
  /** A piece of a block's output, in memory of the chunk that it came in. */
  output(type: "stdout" | "stderr", block: number, bytes: Buffer, memory: SharedMemory | undefined): void;
  /** A whole frame of another type. */
  report(type: number, block: number, payload: Buffer): void;
}

/** Reads frames from chunks that are cut anywhere. Output is handed on as it comes, without waiting for its frame. */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  readonly #header = Buffer.alloc(headerSize);
  #headerUsed = 0;
  #left = 0;
  #report: Buffer[] = [];

  constructor(consumer: FrameConsumer) {
    this.#consumer = consumer;
  }

  /**
   * @param memory - that of the chunk, if it is used again.
   * @throws Error if this is no frame of the supervisor.
   */
  push(chunk: Buffer, memory?: SharedMemory): void {
    for (let rest = chunk; rest.length > 0;) {
      if (this.#headerUsed < headerSize) {
        const taken = rest.copy(this.#header, this.#headerUsed);
        this.#headerUsed += taken;
        rest = rest.subarray(taken);
        if (this.#headerUsed === headerSize) this.#begin();
      } else {
        const piece = rest.subarray(0, this.#left);
        rest = rest.subarray(piece.length);
        this.#take(piece, memory);
      }
    }
  }

  get #type(): number {
    return this.#header.readUInt8(4);
  }

  get #isOutput(): boolean {
    return this.#type === frameType.stdout || this.#type === frameType.stderr;
  }

  #begin(): void {
    this.#left = this.#header.readUInt32BE(0) - (headerSize - 4);
    const known = this.#type >= frameType.hello && this.#type <= frameType.done;
    if (!known || this.#left < 0 || (!this.#isOutput && this.#left > longestReport)) {
      throw new Error("what came from the supervisor in the container is not what it writes");
    }
    if (this.#left === 0) this.#end();
  }

  #take(piece: Buffer, memory: SharedMemory | undefined): void {
    this.#left -= piece.length;
    if (this.#isOutput) {
      const stream = this.#type === frameType.stdout ? "stdout" : "stderr";
      this.#consumer.output(stream, this.#header.readUInt32BE(5), piece, memory);
    } else {
      this.#report.push(memory ? Buffer.from(piece) : piece);
    }
    if (this.#left === 0) this.#end();
  }

  #end(): void {
    this.#headerUsed = 0;
    if (this.#isOutput) return;
    const payload = Buffer.concat(this.#report);
    this.#report = [];
    this.#consumer.report(this.#type, this.#header.readUInt32BE(5), payload);
  }
}
