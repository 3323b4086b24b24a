import { ByteQueue } from "@fenced/core";

/** Bytes that the bodies of all requests to this program together may take in memory. */
const mostHeld = 268_435_456;
const longest = 16_777_216;

let held = 0;

/** A request's body that is not taken. */
export class BodyRefusal extends Error {
  override readonly name = "BodyRefusal";
  /** The HTTP status that says so. */
  readonly status: 413 | 429;

  constructor(status: BodyRefusal["status"], message: string) {
    super(message);
    this.status = status;
  }
}

/** A request's body in memory, which counts until it is disposed of. */
export interface HeldBody extends Disposable {
  readonly bytes: Uint8Array;
}

/**
 * Reads a request's body.
 *
 * @throws BodyRefusal if it is longer than 16 MiB, or if there is no room for it.
 */
export async function readBody({ body }: Request): Promise<HeldBody> {
  const bytes = new ByteQueue();
  let count = 0;
  const release = (): void => {
    held -= count;
    count = 0;
  };
  try {
    const pieces: AsyncIterable<Uint8Array> = body ?? ReadableStream.from<Uint8Array>([]);
    for await (const piece of pieces) {
      if (count + piece.length > longest) throw new BodyRefusal(413, "The request has more than 16 MiB");
      if (held + piece.length > mostHeld) throw new BodyRefusal(429, "Other requests take too much memory: try again");
      held += piece.length;
      count += piece.length;
      bytes.add(piece);
    }
    return { bytes: bytes.take(), [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
}
