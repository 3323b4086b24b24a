import { BackendUnavailableError, ByteQueue, InvalidInputError, type FileInfo } from "@fenced/core";
import { pathBytes } from "../../workspace/path-bytes.ts";
import type { FileContent } from "../../workspace/spool-file.ts";

/** Maximum size of a piece of a file in bytes; the program sends no larger ones. */
const pieceBytes = 262_144;
/** Maximum length of a record in characters. */
const longestRecord = 1_048_576;
/** In place of a file's first length: it is gone, or cannot be read. */
export const absences: ReadonlyMap<number, "gone" | "unreadable"> = new Map([
  [0xffff_ffff, "gone"],
  [0xffff_fffe, "unreadable"],
]);

/** A file that arrives. */
export interface ReceivedFile<File extends FileInfo = FileInfo> {
  readonly file: File;
  /** `"gone"` if it has been removed meanwhile, `"unreadable"` if the code has made it so. */
  readonly content: AsyncIterable<Uint8Array> | "gone" | "unreadable";
}

/** A file to send. */
export interface SentFile {
  readonly path: string;
  readonly content: FileContent;
}

/** Files for the program: for each, its path, then its pieces, the last one empty; at the end, an empty path. */
export async function* inPieces(files: readonly SentFile[]): AsyncGenerator<Uint8Array, void, void> {
  for (const { path, content } of files) {
    yield asPiece(pathBytes(path));
    let left = content.size;
    for await (const chunk of content) {
      left -= chunk.length;
      if (left < 0) break;
      for (const piece of piecesOf(chunk)) yield asPiece(piece);
    }
    if (left !== 0) throw changed(path);
    yield asPiece(Buffer.alloc(0));
  }
  yield asPiece(Buffer.alloc(0));
}

/** Splits content into pieces that the program accepts. */
export function* piecesOf(content: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < content.length; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}

/** Bytes after their length. */
export function asPiece(bytes: Uint8Array): Buffer {
  const piece = Buffer.allocUnsafe(4 + bytes.length);
  piece.writeUInt32BE(bytes.length);
  piece.set(bytes, 4);
  return piece;
}

/**
 * Reads files that the program sends one after another.
 *
 * @param answer - pieces after their lengths, or a mark in place of the first length; see `send_contents`.
 */
export async function* receivedFiles<File extends FileInfo>(
  files: readonly File[],
  answer: AsyncIterable<Uint8Array>,
): AsyncGenerator<ReceivedFile<File>, void, void> {
  const pieces = readPieces(answer, pieceBytes, absences);
  try {
    for (const file of files) {
      const first = await nextPiece(pieces, file.path);
      if (typeof first === "string") {
        yield { file, content: first };
        continue;
      }
      const rest = untilEmpty(first, pieces, file.path);
      yield { file, content: rest };
      // Skip what was not read.
      while ((await rest.next()).done !== true);
    }
  } finally {
    // End the program there if the reader leaves early.
    await pieces.return();
  }
}

/** A piece of a file, or why there is none. */
type Piece = Uint8Array | "gone" | "unreadable";

/**
 * Reads pieces after their lengths, and marks in place of lengths. Ends early if a length is not valid.
 *
 * @param mostBytes - the longest piece.
 */
export async function* readPieces<Mark extends string>(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number,
  marks: ReadonlyMap<number, Mark>,
): AsyncGenerator<Uint8Array | Mark, void, void> {
  const queue = new ByteQueue();
  let length: number | undefined;
  for await (const chunk of chunks) {
    queue.add(chunk);
    while (queue.length >= (length ?? 4)) {
      if (length === undefined) {
        length = Buffer.from(queue.take(4)).readUInt32BE();
        if (length <= mostBytes) continue;
        const mark = marks.get(length);
        if (mark === undefined) return;
        yield mark;
      } else yield queue.take(length);
      length = undefined;
    }
  }
}

/** The pieces of one file. Not a generator, because a reader that leaves early must not end it. */
function untilEmpty(
  first: Uint8Array,
  pieces: AsyncIterator<Piece, void, void>,
  file: string,
): AsyncIterableIterator<Uint8Array> {
  let next: Uint8Array | undefined = first;
  const content: AsyncIterableIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => content,
    async next() {
      const piece = next ?? (await nextPiece(pieces, file));
      next = undefined;
      if (typeof piece === "string") throw notAnAnswer(file);
      if (piece.length > 0) return { done: false, value: piece };
      next = piece;
      return { done: true, value: undefined };
    },
  };
  return content;
}

/** The next piece. @throws BackendUnavailableError if there is none. */
export async function nextPiece<Item>(pieces: AsyncIterator<Item, void, void>, file: string): Promise<Item> {
  const { value, done } = await pieces.next();
  if (done === true) throw notAnAnswer(file);
  return value;
}

/** Reads the records of an answer, each of which ends with a zero byte, as text in Latin-1. */
export async function* readRecords(
  answer: AsyncIterable<Uint8Array>,
  file: string,
): AsyncGenerator<string, void, void> {
  let rest = "";
  for await (const chunk of answer) {
    const records = (rest + Buffer.from(chunk).toString("latin1")).split("\0");
    rest = records.pop() ?? "";
    if (rest.length > longestRecord) throw notAnAnswer(file);
    yield* records;
  }
}

function changed(file: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} changed while it was being sent`, {
    remedy: "Send it again when no program writes to it.",
  });
}

/** The error for an answer that cannot be from the program. */
export function notAnAnswer(file: string): BackendUnavailableError {
  return new BackendUnavailableError(`The answer about ${JSON.stringify(file)} does not match the request`, {
    remedy: "Code may have interfered with the request. Call restart(), and try again.",
  });
}
