import { randomUUID } from "node:crypto";
import { folders } from "./keys.ts";
import type { ObjectStorage, StoredObject } from "./object-storage.ts";

/** How often a writer gives a sign of life, and when one that gives none counts as dead, in milliseconds. */
const [beatMs, deadMs] = [20_000, 600_000];
const [leaseEnd, beatEnd] = [".lease", ".beat"];

/** A checkpoint that is being written tells sweeps that it may need parts that no checkpoint has yet. */
export class RunningWriter {
  readonly #storage: ObjectStorage;
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;

  private constructor(storage: ObjectStorage) {
    this.#storage = storage;
    this.#key = `${folders.writers}${randomUUID()}`;
  }

  static async begin(storage: ObjectStorage): Promise<RunningWriter> {
    const writer = new RunningWriter(storage);
    await storage.put(`${writer.#key}${leaseEnd}`, new Uint8Array(0));
    writer.#timer = setInterval(() => {
      // If this fails for long, the lease is taken away, and then the checkpoint fails.
      storage.put(`${writer.#key}${beatEnd}`, new Uint8Array(0)).catch(() => {});
    }, beatMs);
    writer.#timer.unref();
    return writer;
  }

  /** False if a sweep took this writer for dead, and may have removed what it needs. */
  async isAlive(): Promise<boolean> {
    return (await this.#storage.size(`${this.#key}${leaseEnd}`)) !== undefined;
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#storage.delete(`${this.#key}${leaseEnd}`);
    await this.#storage.delete(`${this.#key}${beatEnd}`);
  }
}

/**
 * When the writers began that are still running, by the storage's clock. Takes the leases of dead ones away.
 *
 * @param now - the time by the storage's clock.
 */
export async function runningSince(storage: ObjectStorage, now: number): Promise<number[]> {
  const leases = new Map<string, StoredObject>();
  const beats = new Map<string, StoredObject>();
  for await (const object of storage.list(folders.writers)) {
    if (object.key.endsWith(leaseEnd)) leases.set(object.key.slice(0, -leaseEnd.length), object);
    else if (object.key.endsWith(beatEnd)) beats.set(object.key.slice(0, -beatEnd.length), object);
  }
  const began: number[] = [];
  for (const [key, lease] of leases) {
    const lastSign = Math.max(lease.modifiedAt, beats.get(key)?.modifiedAt ?? 0);
    // A writer that comes back late looks for its lease after it has completed the checkpoint.
    if (lastSign < now - deadMs) await storage.delete(lease.key);
    else began.push(lease.modifiedAt);
  }
  for (const [key, beat] of beats) {
    if (!leases.has(key) && beat.modifiedAt < now - deadMs) await storage.delete(beat.key);
  }
  return began;
}
