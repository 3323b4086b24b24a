import { ByteQueue, type JsonObject } from "@fenced/core";

/** Lengths of the JSON text and of the bytes after it, both big-endian. */
const headerBytes = 8;
/** Maximum length of an answer's JSON text; anything longer was written by something else. */
const longestText = 16_777_216;
const longestData = 1_048_576;

/** A message to or from the program in the sandbox that serves its files. */
export interface Frame {
  readonly text: Uint8Array;
  readonly data: Uint8Array;
}

/** Encodes a message. */
export function encodeFrame(message: JsonObject, data: Uint8Array = new Uint8Array()): Uint8Array {
  const text = Buffer.from(JSON.stringify(message));
  const header = Buffer.allocUnsafe(headerBytes);
  header.writeUInt32BE(text.length, 0);
  header.writeUInt32BE(data.length, 4);
  return Buffer.concat([header, text, data]);
}

/**
 * Reads messages from pieces of any size.
 *
 * @throws Error if they are not valid.
 */
export async function* readFrames(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Frame, void, void> {
  const queue = new ByteQueue();
  let lengths: readonly [number, number] | undefined;
  for await (const piece of pieces) {
    queue.add(piece);
    for (;;) {
      if (!lengths && queue.length >= headerBytes) lengths = readLengths(queue.take(headerBytes));
      if (!lengths || queue.length < lengths[0] + lengths[1]) break;
      const [text, data] = lengths;
      lengths = undefined;
      yield { text: queue.take(text), data: queue.take(data) };
    }
  }
}

function readLengths(header: Uint8Array): readonly [number, number] {
  const view = new DataView(header.buffer, header.byteOffset, headerBytes);
  const [text, data] = [view.getUint32(0), view.getUint32(4)];
  if (text > longestText || data > longestData) throw new Error("the sandbox's answer is not valid");
  return [text, data];
}
