import { randomUUID } from "node:crypto";
import { folders } from "./keys.ts";
import type { ObjectStorage } from "./object-storage.ts";

/** A list has up to 83 bytes for each part: its key and a line end. */
const mostListBytes = 268_435_456;
/** Parts in one list. */
const mostInList = 1_000_000;

/** A list of parts that no checkpoint needed, which are removed once no running writer can need them. */
export interface CondemnedParts {
  readonly key: string;
  /** When the list was written, by the storage's clock. */
  readonly since: number;
  readonly parts: readonly string[];
}

/** Writes a list; what is beyond its limit stays for the next sweep. @returns its key. */
export async function condemn(storage: ObjectStorage, parts: readonly string[]): Promise<string> {
  const key = `${folders.condemned}${randomUUID()}`;
  await storage.put(key, Buffer.from(parts.slice(0, mostInList).join("\n")));
  return key;
}

/** All lists. */
export async function readCondemned(storage: ObjectStorage): Promise<CondemnedParts[]> {
  const lists: CondemnedParts[] = [];
  for await (const { key, modifiedAt } of storage.list(folders.condemned)) {
    const bytes = await storage.get(key, mostListBytes);
    // A sweep has just ended; or the list is damaged, and the next sweep makes another one.
    if (bytes === undefined) continue;
    const text = bytes === "larger" ? "" : Buffer.from(bytes).toString();
    lists.push({ key, since: modifiedAt, parts: text === "" ? [] : text.split("\n") });
  }
  return lists;
}
