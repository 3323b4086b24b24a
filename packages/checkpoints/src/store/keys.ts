import type { CheckpointPart } from "@fenced/core";

/** The folder of each kind of object; the decision page on checkpoints explains the layout. */
export const folders = {
  /** Parts of files, and of lists of files, under their hashes. */
  parts: "parts/",
  /** One record for each checkpoint, under its id. */
  checkpoints: "checkpoints/",
  /** Checkpoints that are being written. */
  writers: "writers/",
  /** Sweeps that are running. */
  sweeps: "sweeps/",
  /** Lists of parts that no checkpoint needed when they were looked at. */
  condemned: "condemned/",
} as const;

/** What names a part in a list: its hash, and which copy it is. */
export function referenceTo({ hash, copy }: Pick<CheckpointPart, "hash" | "copy">): string {
  return copy === undefined ? hash : `${hash}.${copy}`;
}

/** @param reference - see `referenceTo`. */
export function partKey(reference: string): string {
  return `${folders.parts}${reference.slice(0, 2)}/${reference}`;
}

const referenceForm = /^([\da-f]{64})(?:\.([\da-f]{8}))?$/;

/** The part with this reference; `undefined` if it is not one. */
export function partOf(reference: string, size: number): CheckpointPart | undefined {
  const [, hash, copy] = referenceForm.exec(reference) ?? [];
  if (hash === undefined) return undefined;
  return copy === undefined ? { hash, size } : { hash, size, copy };
}

/** Whether something can be the id of a checkpoint. */
export function isId(id: string): boolean {
  return /^[\da-f]{64}$/.test(id);
}
