import type { Readable } from "node:stream";

/** Bytes that a login shell may print before a program speaks. */
const longestNoise = 262_144;
/** Characters of them to report. */
const longestReason = 1000;

/** The stream ended, or has too much else before the greeting. The message is what arrived instead. */
export class NoGreeting extends Error {}

/**
 * Skips what a login shell prints, up to a line that begins with a greeting that only the started program knows.
 *
 * @returns the rest of that line. The stream is then paused, and continues after the line.
 * @throws NoGreeting, or the error that the stream was destroyed with.
 */
export function untilGreeting(stream: Readable, greeting: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen: Buffer = Buffer.alloc(0);
    const leave = (): void => {
      stream.pause().off("data", take).off("close", end).off("error", end);
    };
    const end = (reason?: unknown): void => {
      leave();
      reject(reason instanceof Error ? reason : new NoGreeting(seen.toString().slice(-longestReason)));
    };
    const take = (bytes: Buffer): void => {
      seen = Buffer.concat([seen, bytes]);
      const start = seen.indexOf(greeting);
      const stop = start < 0 ? -1 : seen.indexOf("\n", start);
      if (stop < 0) {
        if (seen.length > longestNoise) end();
        return;
      }
      leave();
      if (stop + 1 < seen.length) stream.unshift(seen.subarray(stop + 1));
      resolve(seen.toString("utf8", start + Buffer.byteLength(greeting), stop));
    };
    stream.on("data", take).on("close", end).on("error", end).resume();
  });
}
