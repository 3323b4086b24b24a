import { ByteQueue } from "@fenced/core";

/** Reads a request's body, and no more than so many bytes of it. @returns `undefined` if it is longer. */
export async function readBody({ body }: Request, longest: number): Promise<Uint8Array | undefined> {
  const bytes = new ByteQueue();
  const pieces: AsyncIterable<Uint8Array> = body ?? ReadableStream.from<Uint8Array>([]);
  for await (const piece of pieces) {
    if (bytes.length + piece.length > longest) return undefined;
    bytes.add(piece);
  }
  return bytes.take();
}
