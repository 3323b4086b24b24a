import type { Readable } from "node:stream";
import { headerSize } from "../supervisor/wire/wire.ts";

/** The types of frames between a program and the host: up to 15 to the host, from 16 back. */
export const callFrame = { hello: 1, call: 2, cancel: 3, result: 16, error: 17 } as const;

/** One received frame. */
export interface CallFrame {
  readonly type: number;
  /** The program's number for the call. */
  readonly id: number;
  readonly payload: Buffer;
}

/** Maximum size of a call's arguments in bytes. */
export const longestInput = 1_048_576;
/** Maximum number of values in a call's arguments: one megabyte of JSON can have half a million. */
export const mostValues = 50_000;
/** Maximum size of its result in bytes. */
export const longestOutput = 4_194_304;

/** A call's payload is the function's name, a line feed and the arguments. */
const longestName = 256;

/**
 * Reads frames from chunks of any size, one on each request. The first one must be short, because the sender has not
 * identified itself yet.
 *
 * @throws Error if a frame is longer than any that a stub sends, which means that the sender is something else.
 */
export async function* readCallFrames(stream: Readable): AsyncGenerator<CallFrame, void, void> {
  let longest = longestName;
  let frame = Buffer.alloc(headerSize);
  let size = 0;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError("the stream must contain bytes");
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

/**
 * Allocates the whole frame at once, because bytes that arrive one by one would take many times their size if stored
 * separately.
 */
function withRoom(header: Buffer, longest: number): Buffer<ArrayBuffer> {
  const length = header.readUInt32BE(0);
  if (length < headerSize - 4 || length > longest + headerSize - 4) throw new Error("this is not a valid call frame");
  const frame = Buffer.allocUnsafe(length + 4);
  header.copy(frame);
  return frame;
}
