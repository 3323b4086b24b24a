const kinds = ["h", "g", "s", "o", "e", "r", "n", "f", "x", "X", "."] as const;

/**
 * Kinds of entries of a run's log, as in `run_log.py`: first the run's record, and gaps where entries were dropped; a
 * block's start, what it prints, displays, notes of the host, why its file was refused, its end; and the run's end.
 */
export type EntryKind = (typeof kinds)[number];

/** @throws Error if there is no such kind. */
export function entryKind(letter: string): EntryKind {
  const kind = kinds.find((each) => each === letter);
  if (kind === undefined) throw new Error("the supervisor's stream is not valid");
  return kind;
}

/** An entry of a run's log. */
export interface RunEntry {
  /** The position of the last event that it may become. */
  readonly number: number;
  readonly kind: EntryKind;
  readonly content: Buffer;
}
