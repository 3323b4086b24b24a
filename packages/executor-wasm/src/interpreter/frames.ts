import { once } from "node:events";
import type { Duplex } from "node:stream";
import { ByteQueue, parseJson } from "@fenced/core";

/** The types of frames. The interpreter's process has the same numbers, in `child/wire.mjs`. */
export const frameType = {
  stdout: 1,
  stderr: 2,
  request: 3,
  done: 4,
  ready: 5,
  snapshot: 6,
  run: 7,
  answer: 8,
  badSnapshot: 9,
} as const;

/** Size of a frame's header: four bytes of length, one of type. */
const headerBytes = 5;
/** Maximum size of a frame from the interpreter: a megabyte of content, and room for the fields. */
const mostBytes = 1_114_112;

/** Maximum number of values in a frame's fields. */
const mostFields = 10_000;

/** One message from the interpreter's process. The code in there can forge it. */
export interface Frame {
  readonly type: number;
  readonly body: Buffer;
}

/** The interpreter's process sent something that is not a valid frame. */
export class ProtocolError extends Error {}

/** Both directions of the stream to an interpreter's process; reads only as fast as `next` is called. */
export class FrameChannel {
  readonly #socket: Duplex;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #bytes = new ByteQueue();

  constructor(socket: Duplex) {
    this.#socket = socket;
    // Writing to a killed process fails; its end is noticed by reading.
    socket.on("error", () => {});
    const chunks: AsyncIterable<Buffer> = socket;
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /**
   * Returns the next frame, or `undefined` when the process has ended.
   *
   * @throws ProtocolError if it is larger than a frame may be.
   */
  async next(): Promise<Frame | undefined> {
    const header = await this.#take(headerBytes);
    if (!header) return undefined;
    const length = header.readUInt32BE();
    if (length > mostBytes) throw new ProtocolError(`A frame of ${length} bytes.`);
    const body = await this.#take(length);
    return body && { type: header.readUInt8(4), body };
  }

  /** Sends a frame of fields, with bytes after them; waits while the process does not read. */
  async send(type: number, fields: object, bytes: Uint8Array = new Uint8Array()): Promise<void> {
    const text = Buffer.from(JSON.stringify(fields));
    const header = Buffer.alloc(headerBytes + 4);
    header.writeUInt32BE(4 + text.length + bytes.length);
    header.writeUInt8(type, 4);
    header.writeUInt32BE(text.length, headerBytes);
    if (this.#socket.destroyed) return;
    if (this.#socket.write(Buffer.concat([header, text, bytes]))) return;
    const waiting = new AbortController();
    const { signal } = waiting;
    const closed = once(this.#socket, "close", { signal });
    await Promise.race([once(this.#socket, "drain", { signal }), closed].map((each) => each.catch(() => {})));
    waiting.abort();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #take(length: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < length) {
      const chunk = await this.#chunks.next().catch(() => undefined);
      if (chunk === undefined || chunk.done === true) return undefined;
      this.#bytes.add(chunk.value);
    }
    const { buffer, byteOffset, byteLength } = this.#bytes.take(length);
    return Buffer.from(buffer, byteOffset, byteLength);
  }
}

/**
 * Splits a frame into its fields and bytes.
 *
 * @throws ProtocolError if it carries no fields.
 */
export function unpack(body: Buffer): { readonly fields: unknown; readonly bytes: Buffer } {
  const length = body.length < 4 ? Infinity : body.readUInt32BE();
  if (4 + length > body.length) throw new ProtocolError("A frame without its fields.");
  try {
    const fields: unknown = parseJson(body.subarray(4, 4 + length), { maxValues: mostFields });
    return { fields, bytes: body.subarray(4 + length) };
  } catch (error) {
    throw new ProtocolError("A frame whose fields are not JSON.", { cause: error });
  }
}
