import type { Writable } from "node:stream";
import type { ProgramRun } from "./block-run.ts";

/** Whether it is input that comes while the program runs. */
export function isLiveInput(stdin: ProgramRun["stdin"]): stdin is AsyncIterable<Uint8Array> {
  return typeof stdin === "object" && Symbol.asyncIterator in stdin;
}

/**
 * Writes the input of a program to a stream as it comes, no faster than the stream takes it, and then ends the stream.
 * Tells the input when the stream closes, as with a program that closes its end.
 */
export async function feedProgram(pieces: AsyncIterable<Uint8Array>, stream: Writable): Promise<void> {
  const iterator: AsyncIterator<Uint8Array, unknown> = pieces[Symbol.asyncIterator]();
  const closed = new Promise<void>((resolve) => {
    stream.once("close", resolve);
  });
  void closed.then(() => iterator.return?.());
  // A program need not read its input.
  stream.on("error", () => {});
  for (;;) {
    const next = await iterator.next();
    if (next.done === true || !stream.writable) break;
    if (stream.write(next.value)) continue;
    const drained = new Promise<void>((resolve) => {
      stream.once("drain", resolve);
    });
    await Promise.race([drained, closed]);
  }
  stream.end();
}
