import type { Readable } from "node:stream";
import { headerSize } from "../supervisor/wire.ts";

/** What a frame between a program and the host is about. To the host up to 15, back from 16. */
export const callFrame = { hello: 1, call: 2, cancel: 3, result: 16, error: 17 } as const;

/** One frame as it came. */
export interface CallFrame {
  readonly type: number;
  /** The program's number of the call. */
  readonly id: number;
  readonly payload: Buffer;
}

/** Bytes that the arguments of a call may take. */
export const longestInput = 1_048_576;
/** Bytes that its result may take. */
export const longestOutput = 4_194_304;

/** A call's payload is the function's name, a line feed and the arguments. */
const longestName = 256;

/**
 * Reads frames from chunks that are cut anywhere, and the next one only when it is asked for. The first one must be short: until
 * then nobody knows who it is.
 *
 * @throws Error if one is longer than a stub would send: then somebody else speaks.
 */
export async function* readCallFrames(stream: Readable): AsyncGenerator<CallFrame, void, void> {
  let longest = longestName;
  let frame = Buffer.alloc(headerSize);
  let size = 0;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("the stream is not one of bytes");
    for (let rest = chunk; rest.length > 0;) {
      const copied = rest.copy(frame, size);
      rest = rest.subarray(copied);
      size += copied;
      if (size === headerSize) frame = withRoom(frame, longest);
      if (size < frame.length) continue;
      yield { type: frame.readUInt8(4), id: frame.readUInt32BE(5), payload: frame.subarray(headerSize) };
      longest = longestName + longestInput;
      frame = Buffer.alloc(headerSize);
      size = 0;
    }
  }
}

/** Room for the whole frame at once: kept apart, bytes that come one by one would take many times their size. */
function withRoom(header: Buffer, longest: number): Buffer<ArrayBuffer> {
  const length = header.readUInt32BE(0);
  if (length < headerSize - 4 || length > longest + headerSize - 4) throw new Error("this is not a frame of a call");
  const frame = Buffer.allocUnsafe(length + 4);
  header.copy(frame);
  return frame;
}
