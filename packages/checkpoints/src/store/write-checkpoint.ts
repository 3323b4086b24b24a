import { hash, randomBytes } from "node:crypto";
import {
  type CheckpointEntry,
  CheckpointError,
  type CheckpointPart,
  type CheckpointWriter,
  type NewCheckpoint,
} from "@fenced/core";
import { parseRecord, recordBytes } from "./checkpoint-record.ts";
import { readCondemned } from "./condemned-parts.ts";
import { entriesIn, inGroups } from "./entry-lines.ts";
import { folders, isId, partKey, referenceTo } from "./keys.ts";
import { Lease } from "./lease.ts";
import type { ObjectStorage } from "./object-storage.ts";
import { mostGroupBytes, mostRecordBytes, readRecord } from "./read-checkpoint.ts";

/** Writes one checkpoint. Nobody sees it before it is complete. */
export class StoreWriter implements CheckpointWriter {
  readonly #storage: ObjectStorage;
  readonly #running: Lease;
  /** Keys that a sweep may remove. */
  readonly #condemned: ReadonlySet<string>;
  /** The earlier checkpoint exists, so nothing that it needs can be removed while this writer runs. */
  readonly #isAfter: boolean;
  /** Distinguishes this writer's copies of condemned parts. */
  readonly #copy = randomBytes(4).toString("hex");
  /** By hash: what this writer stores, or has found. */
  readonly #parts = new Map<string, Promise<CheckpointPart>>();
  #newBytes = 0;

  private constructor(
    storage: ObjectStorage,
    found: { readonly running: Lease; readonly condemned: ReadonlySet<string>; readonly isAfter: boolean },
  ) {
    this.#storage = storage;
    this.#running = found.running;
    this.#condemned = found.condemned;
    this.#isAfter = found.isAfter;
  }

  static async begin(storage: ObjectStorage, after: string | undefined): Promise<StoreWriter> {
    // In this order: a sweep first writes its list, and then looks which writers are running.
    const running = await Lease.begin(storage, folders.writers);
    try {
      const condemned = new Set((await readCondemned(storage)).flatMap(({ parts }) => parts));
      const isAfter = after !== undefined && isId(after) && (await readRecord(storage, after)) !== undefined;
      return new StoreWriter(storage, { running, condemned, isAfter });
    } catch (error) {
      await running.end().catch(() => {});
      throw error;
    }
  }

  async has(part: CheckpointPart): Promise<boolean> {
    const key = partKey(referenceTo(part));
    if (this.#condemned.has(key)) return false;
    return this.#isAfter || (await this.#storage.size(key)) === part.size;
  }

  put(bytes: Uint8Array): Promise<CheckpointPart> {
    const digest = hash("sha256", bytes);
    const known = this.#parts.get(digest);
    if (known) return known;
    const storing = this.#store(digest, bytes);
    this.#parts.set(digest, storing);
    // The caller may try again.
    storing.catch(() => this.#parts.delete(digest));
    return storing;
  }

  async commit({ entries, variables, incomplete }: NewCheckpoint): Promise<{ id: string; newBytes: number }> {
    let [files, bytes] = [0, 0];
    const counted = function* (): Generator<CheckpointEntry, void, void> {
      for (const entry of entries) {
        if (entry.type === "file") [files, bytes] = [files + 1, bytes + entry.size];
        yield entry;
      }
    };
    const groups: string[] = [];
    for (const group of inGroups(counted())) {
      const content = Buffer.from(group);
      assertReadable(content, mostGroupBytes, () => [...entriesIn(group)]);
      groups.push(referenceTo(await this.put(content)));
    }
    await this.#storage.flush?.();
    const record = recordBytes({ createdAt: new Date(), files, bytes, groups, variables, incomplete });
    assertReadable(record, mostRecordBytes, () => parseRecord(record));
    const id = hash("sha256", record);
    const key = `${folders.checkpoints}${id}`;
    await this.#put(key, record);
    await this.#storage.flush?.();
    if (await this.#running.isAlive()) return { id, newBytes: this.#newBytes };
    await this.#storage.delete(key);
    throw new CheckpointError(
      "The checkpoint was given up: this program was silent for so long that a sweep removed its parts",
      {
        remedy: "Take it again. The program, or its connection to the store, was stopped for ten minutes.",
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is left of it is taken away by a later sweep.
    await this.#running.end().catch(() => {});
  }

  async #store(digest: string, bytes: Uint8Array): Promise<CheckpointPart> {
    const first: CheckpointPart = { hash: digest, size: bytes.length };
    const key = partKey(digest);
    if (this.#condemned.has(key)) {
      const part = { ...first, copy: this.#copy };
      await this.#put(partKey(referenceTo(part)), bytes);
      return part;
    }
    // A part of another size was damaged.
    if ((await this.#storage.size(key)) !== bytes.length) await this.#put(key, bytes);
    return first;
  }

  async #put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#storage.put(key, bytes);
    this.#newBytes += bytes.length;
  }
}

/** @throws CheckpointError if something could never be read again: nobody would notice before it is needed. */
function assertReadable(bytes: Uint8Array, atMost: number, read: () => unknown): void {
  let cause: unknown = new RangeError(`${bytes.length} bytes are more than ${atMost}`);
  try {
    if (bytes.length <= atMost) {
      read();
      return;
    }
  } catch (error) {
    cause = error;
  }
  throw new CheckpointError(`The checkpoint could not be read again: ${String(cause)}`, {
    remedy: "Keep fewer files or variables, and give them shorter names.",
    cause,
  });
}
