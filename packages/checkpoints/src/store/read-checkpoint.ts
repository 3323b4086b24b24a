import { hash } from "node:crypto";
import {
  CheckpointError,
  type CheckpointEntry,
  type CheckpointPart,
  InvalidInputError,
  type SavedCheckpoint,
} from "@fenced/core";
import { type CheckpointRecord, infoOf, parseRecord } from "./checkpoint-record.ts";
import { entriesIn } from "./entry-lines.ts";
import { folders, isId, partKey, partOf, referenceTo } from "./keys.ts";
import type { ObjectStorage } from "./object-storage.ts";

/** Limits on what is read into memory, of records and of groups of entries. Files have parts of a known size. */
export const mostRecordBytes = 67_108_864;
export const mostGroupBytes = 268_435_456;

/** Reads a checkpoint's record. @returns `undefined` if there is none. @throws CheckpointError if it is damaged. */
export async function readRecord(storage: ObjectStorage, id: string): Promise<CheckpointRecord | undefined> {
  const bytes = await storage.get(`${folders.checkpoints}${id}`, mostRecordBytes);
  if (bytes === undefined) return undefined;
  if (bytes === "larger" || hash("sha256", bytes) !== id) throw damaged(id, "its record is damaged");
  try {
    return parseRecord(bytes);
  } catch (cause) {
    throw damaged(id, "its record cannot be read", cause);
  }
}

/** The entries of a checkpoint, as they are read. @throws CheckpointError if a part of the list is missing or damaged. */
export async function* readEntries(
  storage: ObjectStorage,
  id: string,
  { groups }: Pick<CheckpointRecord, "groups">,
): AsyncGenerator<CheckpointEntry, void, void> {
  for (const reference of groups) {
    const bytes = await readPart(storage, id, {
      reference,
      what: "a part of its list of files",
      atMost: mostGroupBytes,
    });
    try {
      yield* entriesIn(Buffer.from(bytes).toString());
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      throw damaged(id, "its list of files cannot be read", cause);
    }
  }
}

interface PartRequest {
  readonly reference: string;
  readonly what: string;
  readonly atMost: number;
}

async function readPart(
  storage: ObjectStorage,
  id: string,
  { reference, what, atMost }: PartRequest,
): Promise<Uint8Array> {
  const bytes = await storage.get(partKey(reference), atMost);
  if (bytes === undefined) throw damaged(id, `${what} is missing (${reference})`);
  if (bytes !== "larger" && hash("sha256", bytes) === partOf(reference, 0)?.hash) return bytes;
  throw damaged(id, `${what} is damaged (${reference})`);
}

/** @throws CheckpointError if there is no checkpoint with this id, or it is damaged. */
export async function openCheckpoint(storage: ObjectStorage, id: string): Promise<SavedCheckpoint> {
  assertId(id);
  const record = await readRecord(storage, id);
  if (!record) {
    throw new CheckpointError(`There is no checkpoint ${id} in ${storage.name}`, {
      remedy: "`store.list()` shows which there are; it may have been deleted.",
    });
  }
  return {
    info: infoOf(id, record),
    variables: record.variables,
    incomplete: record.incomplete,
    entries: () => readEntries(storage, id, record),
    content: (part: CheckpointPart) =>
      readPart(storage, id, { reference: referenceTo(part), what: "a part of a file", atMost: part.size }),
  };
}

/** @throws InvalidInputError if it cannot be the id of a checkpoint. */
export function assertId(id: string): void {
  if (isId(id)) return;
  throw new InvalidInputError(`${JSON.stringify(id.slice(0, 100))} is not the id of a checkpoint`, {
    remedy: "Pass the `id` that checkpoint() returned: 64 hexadecimal digits.",
  });
}

/** The error for a checkpoint that cannot be used. */
function damaged(id: string, why: string, cause?: unknown): CheckpointError {
  return new CheckpointError(`The checkpoint ${id} is damaged: ${why}`, {
    remedy: "Restore the store from a backup, or use an earlier checkpoint and delete this one with store.delete(id).",
    ...(cause === undefined ? {} : { cause }),
  });
}
