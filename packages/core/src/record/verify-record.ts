import { readChain, type RecordProblem } from "./record-chain.ts";

/** A record that is complete as far as it goes. */
export interface ValidRecord {
  readonly valid: true;
  /** Number of runs. */
  readonly count: number;
  /** SHA-256 of the last line, in hexadecimal; 64 zeros if there is none. */
  readonly lastHash: string;
  /**
   * Numbers of incomplete lines, which a program was writing when it died; the record goes on after each, and its next line
   * names them. At most 100.
   */
  readonly torn: readonly number[];
}

/** A record with its first problem. */
export interface InvalidRecord extends RecordProblem {
  readonly valid: false;
}

/**
 * Checks that each line of a record that `recordFile` has written follows the one before. Takes little memory, whatever the file's
 * size.
 *
 * This finds lines that were changed, removed, added or moved. It does not find that the last lines were cut off, unless you compare
 * `lastHash` or `count` with what you kept elsewhere; nor that somebody who can write the file has written all of it anew.
 *
 * @throws the system's error if the file cannot be read.
 *
 * @example
 * const record = await verifyRecord("runs.jsonl");
 * if (!record.valid) console.error(`Line ${record.line}: ${record.reason}`);
 */
export async function verifyRecord(path: string): Promise<ValidRecord | InvalidRecord> {
  const chain = await readChain(path);
  if ("reason" in chain) return { valid: false, ...chain };
  const { count, lastHash, torn, tornEnd } = chain;
  if (!tornEnd) return { valid: true, count, lastHash, torn };
  const reason =
    "It is incomplete: a program died while it wrote it, or it was changed. The next run that is recorded will name it.";
  return { valid: false, line: tornEnd.first, reason };
}
