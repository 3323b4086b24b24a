import type { BlockEvent } from "@fenced/executor-kit";

/** A piece of what a block printed; `cut`: the log ends here, but the block went on. */
export type LogRecord = Extract<BlockEvent, { readonly type: "stdout" | "stderr" }> | { readonly type: "cut" };

/** The name of an executor's log, in the session's root. */
export function logNameOf(executorId: string): string {
  return `.fenced-${executorId}`;
}

/** Whether a file is the log of an executor: this one, or another one that uses or used the session. */
export function isLogName(file: string): boolean {
  return /^\.fenced-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(file);
}

const streams: Readonly<Record<string, "stdout" | "stderr">> = { o: "stdout", e: "stderr" };
const headLength = 5;
/** Maximum bytes to read from a log: the helper writes less, but code can put anything in the log's place. */
const longestLog = 256 * 1024 * 1024;
const cutLetter = "t".charCodeAt(0);

/**
 * Reads a log in the helper's format: a letter, four bytes of length, the text. The records share memory with
 * `bytes`; a long text comes in several pieces.
 */
export async function* readLog(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<LogRecord, void> {
  const head = Buffer.alloc(headLength);
  let headFilled = 0;
  let left = 0;
  let length = 0;
  for await (const piece of bytes) {
    length += piece.length;
    if (length > longestLog) {
      yield { type: "cut" };
      return;
    }
    for (let at = 0; at < piece.length;) {
      if (left > 0) {
        const data = piece.subarray(at, at + left);
        const type = streams[String.fromCharCode(head[0] ?? 0)];
        if (type) yield { type, data };
        left -= data.length;
        at += data.length;
        continue;
      }
      const part = piece.subarray(at, at + headLength - headFilled);
      head.set(part, headFilled);
      headFilled += part.length;
      at += part.length;
      if (headFilled < headLength) continue;
      headFilled = 0;
      left = head.readUInt32BE(1);
      if (head[0] === cutLetter) yield { type: "cut" };
    }
  }
}
