import { CheckpointError, type SweepResult } from "@fenced/core";
import { condemn, type CondemnedParts, readCondemned } from "./condemned-parts.ts";
import { folders, isId, partKey, referenceTo } from "./keys.ts";
import { Lease, runningSince } from "./lease.ts";
import type { ObjectStorage } from "./object-storage.ts";
import { readEntries, readRecord } from "./read-checkpoint.ts";

/** How far the clocks of a storage's machines may be apart, and how coarse they may be, in milliseconds. */
const clockMs = 60_000;
const deletionsAtOnce = 8;

/**
 * Removes the parts that no checkpoint needs, in two steps. It first writes a list of them: writers that begin later do
 * not use a part on it. Then, once all writers that began earlier have ended, it removes those that still no checkpoint
 * needs. If some of these writers are running, a later sweep does that.
 *
 * Another sweep may have read a list and still remove what is on it. So a list stays as long as others run: writers that
 * begin meanwhile must not use these parts either.
 */
export async function sweepStorage(storage: ObjectStorage): Promise<SweepResult> {
  const lease = await Lease.begin(storage, folders.sweeps);
  try {
    return await sweepWith(storage, lease);
  } finally {
    await lease.end().catch(() => {});
  }
}

async function sweepWith(storage: ObjectStorage, lease: Lease): Promise<SweepResult> {
  const needed = await neededKeys(storage);
  const earlier = new Set((await readCondemned(storage)).flatMap(({ parts }) => parts));
  const sizes = new Map<string, number>();
  for await (const { key, size } of storage.list(folders.parts)) if (!needed.has(key)) sizes.set(key, size);
  const own = await condemn(
    storage,
    [...sizes.keys()].filter((key) => !earlier.has(key)),
  );
  const lists = await readCondemned(storage);
  const now = lists.find(({ key }) => key === own)?.since ?? 0;
  const began = await runningSince(storage, folders.writers, now);
  const isOver = ({ since }: CondemnedParts): boolean => began.every((time) => time > since + clockMs);
  const ready = lists.filter(isOver);
  const removed = await removeParts(storage, ready, { sizes, lease });
  // In this order: a sweep that begins later does not find the parts.
  const isAlone = (await runningSince(storage, folders.sweeps, now)).length <= 1 && (await lease.isAlive());
  if (isAlone) for (const { key } of ready) await storage.delete(key);
  await storage.tidy?.(now);
  const waiting = new Set(lists.filter((list) => !isOver(list)).flatMap(({ parts }) => parts));
  return { ...removed, waiting: [...waiting].filter((key) => sizes.has(key)).length };
}

async function removeParts(
  storage: ObjectStorage,
  lists: readonly CondemnedParts[],
  { sizes, lease }: { readonly sizes: ReadonlyMap<string, number>; readonly lease: Lease },
): Promise<Pick<SweepResult, "removed" | "bytes">> {
  let [removed, bytes] = [0, 0];
  const condemned = new Set(lists.flatMap(({ parts }) => parts));
  if (condemned.size > 0) {
    // A writer that began before a list was written may have completed a checkpoint since.
    const needed = await neededKeys(storage);
    const keys = [...condemned].filter((key) => !needed.has(key) && sizes.has(key));
    for (let at = 0; at < keys.length; at += deletionsAtOnce) {
      if (!(await lease.isAlive())) throw silentSweep();
      await Promise.all(keys.slice(at, at + deletionsAtOnce).map((key) => storage.delete(key)));
    }
    removed = keys.length;
    bytes = keys.reduce((sum, key) => sum + (sizes.get(key) ?? 0), 0);
  }
  return { removed, bytes };
}

function silentSweep(): CheckpointError {
  return new CheckpointError("The sweep was given up: this program was silent for so long that another one began", {
    remedy: "Call sweep() again. The program, or its connection to the store, was stopped for ten minutes.",
  });
}

/** The keys of all parts that the checkpoints need. @throws CheckpointError if one is damaged. */
async function neededKeys(storage: ObjectStorage): Promise<Set<string>> {
  const needed = new Set<string>();
  for await (const { key } of storage.list(folders.checkpoints)) {
    const id = key.slice(folders.checkpoints.length);
    if (isId(id)) await addNeeded(storage, id, needed);
  }
  return needed;
}

async function addNeeded(storage: ObjectStorage, id: string, needed: Set<string>): Promise<void> {
  try {
    const record = await readRecord(storage, id);
    if (!record) return;
    for (const group of record.groups) needed.add(partKey(group));
    for (const part of (record.variables?.variables ?? []).flatMap(({ parts }) => parts)) {
      needed.add(partKey(referenceTo(part)));
    }
    for await (const entry of readEntries(storage, id, record)) {
      if (entry.type !== "file") continue;
      for (const part of entry.parts) needed.add(partKey(referenceTo(part)));
    }
  } catch (error) {
    // It may have been deleted meanwhile, and its parts removed by another sweep.
    if ((await storage.size(`${folders.checkpoints}${id}`)) !== undefined) throw error;
  }
}
