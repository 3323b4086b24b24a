import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { hashOf, longestLine, noLine, parseLine } from "./record-line.ts";

/** What is wrong with a record. */
export interface RecordProblem {
  /** Number of the line, from 1. */
  readonly line: number;
  /** A sentence. */
  readonly reason: string;
}

/** Incomplete lines at some point of a record: what programs were writing when they died. */
interface TornLines {
  /** Number of the first one. */
  readonly first: number;
  readonly lines: number;
  /** SHA-256 of all of them. */
  readonly sha256: string;
}

/** A record whose lines follow each other. */
export interface RecordChain {
  /** Number of runs. */
  readonly count: number;
  /** SHA-256 of the last whole line. */
  readonly lastHash: string;
  /** Numbers of incomplete lines that a later line explains; at most 100. */
  readonly torn: readonly number[];
  /** Incomplete lines at the end. */
  readonly tornEnd: TornLines | undefined;
  /** The last line ends with a line break, or there is none. */
  readonly isEnded: boolean;
}

const mostTorn = 100;

/**
 * Reads a whole record, in little memory.
 *
 * @throws the system's error if it cannot be read.
 */
export async function readChain(path: string): Promise<RecordChain | RecordProblem> {
  const torn: number[] = [];
  let [number, count, lastHash, isEnded] = [0, 0, noLine, true];
  let parts: { readonly first: number; lines: number; readonly hash: Hash } | undefined;
  for await (const line of linesOf(path)) {
    number += 1;
    if (line.bytes.length > longestLine) return { line: number, reason: `It is longer than ${longestLine} bytes.` };
    ({ isEnded } = line);
    const head = parseLine(line.bytes);
    if (!head) {
      if (parts) parts.hash.update("\n");
      parts ??= { first: number, lines: 0, hash: createHash("sha256") };
      parts.hash.update(line.bytes);
      parts.lines += 1;
      continue;
    }
    const found = parts && { lines: parts.lines, sha256: parts.hash.digest("hex") };
    if (parts && !head.torn) {
      return { line: parts.first, reason: "It is not a line of a record: it was changed or added." };
    }
    if (head.torn && (found?.lines !== head.torn.lines || found.sha256 !== head.torn.sha256)) {
      return { line: number, reason: "The incomplete lines before it are not those that it names." };
    }
    if (head.seq !== count + 1) {
      return {
        line: number,
        reason: `Its number is ${head.seq}, but ${count + 1} comes next: lines were removed, added or moved.`,
      };
    }
    if (head.previous !== lastHash) {
      return { line: number, reason: "It does not follow the line before it: that one was changed." };
    }
    if (parts && torn.length < mostTorn) torn.push(parts.first);
    parts = undefined;
    count = head.seq;
    lastHash = hashOf(line.bytes);
  }
  const tornEnd = parts && { first: parts.first, lines: parts.lines, sha256: parts.hash.digest("hex") };
  return { count, lastHash, torn, tornEnd, isEnded };
}

/** Yields the lines of a file; of one that is too long, only as much as shows that. */
async function* linesOf(
  path: string,
): AsyncGenerator<{ readonly bytes: Buffer; readonly isEnded: boolean }, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  const pieces: AsyncIterable<Buffer> = createReadStream(path);
  for await (const piece of pieces) {
    let at = 0;
    for (let end = piece.indexOf(10); end !== -1; end = piece.indexOf(10, at)) {
      yield { bytes: Buffer.concat([rest, piece.subarray(at, end)]), isEnded: true };
      rest = Buffer.alloc(0);
      at = end + 1;
    }
    rest = Buffer.concat([rest, piece.subarray(at)]);
    if (rest.length > longestLine) break;
  }
  if (rest.length > 0) yield { bytes: rest, isEnded: false };
}
