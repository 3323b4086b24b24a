import {
  CheckpointError,
  type CheckpointInfo,
  type CheckpointStore,
  type CheckpointWriter,
  type SavedCheckpoint,
  type SweepResult,
} from "@fenced/core";
import { infoOf } from "./checkpoint-record.ts";
import { folders, isId } from "./keys.ts";
import type { ObjectStorage } from "./object-storage.ts";
import { assertId, openCheckpoint, readRecord } from "./read-checkpoint.ts";
import { sweepStorage } from "./sweep.ts";
import { StoreWriter } from "./write-checkpoint.ts";

const readsAtOnce = 16;

/** Keeps checkpoints in a storage of objects, whatever it is. */
export class ObjectStore implements CheckpointStore {
  readonly #storage: ObjectStorage;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  begin({ after }: { readonly after?: string | undefined } = {}): Promise<CheckpointWriter> {
    return StoreWriter.begin(this.#storage, after);
  }

  open(id: string): Promise<SavedCheckpoint> {
    return openCheckpoint(this.#storage, id);
  }

  async list(): Promise<CheckpointInfo[]> {
    const ids: { readonly id: string; readonly modifiedAt: number }[] = [];
    for await (const { key, modifiedAt } of this.#storage.list(folders.checkpoints)) {
      const id = key.slice(folders.checkpoints.length);
      // Somebody may have put something else there.
      if (isId(id)) ids.push({ id, modifiedAt });
    }
    const infos: CheckpointInfo[] = [];
    for (let at = 0; at < ids.length; at += readsAtOnce) {
      const read = await Promise.all(ids.slice(at, at + readsAtOnce).map((each) => this.#infoOf(each)));
      infos.push(...read.filter((info) => info !== undefined));
    }
    return infos.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
  }

  async delete(id: string): Promise<void> {
    assertId(id);
    await this.#storage.delete(`${folders.checkpoints}${id}`);
    await this.#storage.flush?.();
  }

  sweep(): Promise<SweepResult> {
    return sweepStorage(this.#storage);
  }

  /** `undefined` if it was deleted meanwhile. */
  async #infoOf({
    id,
    modifiedAt,
  }: {
    readonly id: string;
    readonly modifiedAt: number;
  }): Promise<CheckpointInfo | undefined> {
    try {
      const record = await readRecord(this.#storage, id);
      return record && infoOf(id, record);
    } catch (error) {
      if (!CheckpointError.isInstance(error)) throw error;
      return { id, createdAt: new Date(modifiedAt), files: 0, bytes: 0, variables: [], problem: error.message };
    }
  }
}
