import { randomUUID } from "node:crypto";
import type { folders } from "./keys.ts";
import type { ObjectStorage, StoredObject } from "./object-storage.ts";

/** How often its owner gives a sign of life, and when one that gives none counts as dead, in milliseconds. */
const [beatMs, deadMs] = [20_000, 600_000];
/** Whose leases they are. */
type LeaseFolder = typeof folders.writers | typeof folders.sweeps;

const [leaseEnd, beatEnd] = [".lease", ".beat"];

/**
 * A checkpoint that is being written tells sweeps that it may need parts that no checkpoint has yet; a sweep tells
 * others that it may have read a list.
 */
export class Lease {
  readonly #storage: ObjectStorage;
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;

  private constructor(storage: ObjectStorage, folder: LeaseFolder) {
    this.#storage = storage;
    this.#key = `${folder}${randomUUID()}`;
  }

  static async begin(storage: ObjectStorage, folder: LeaseFolder): Promise<Lease> {
    const lease = new Lease(storage, folder);
    await storage.put(`${lease.#key}${leaseEnd}`, new Uint8Array(0));
    lease.#timer = setInterval(() => {
      // If this fails for long, the lease is taken away, and then the checkpoint or the sweep fails.
      storage.put(`${lease.#key}${beatEnd}`, new Uint8Array(0)).catch(() => {});
    }, beatMs);
    lease.#timer.unref();
    return lease;
  }

  /** False if a sweep took its owner for dead, and may have removed what that needs. */
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
 * When those began that are still running, by the storage's clock. Takes the leases of dead ones away.
 *
 * @param now - the time by the storage's clock.
 */
export async function runningSince(storage: ObjectStorage, folder: LeaseFolder, now: number): Promise<number[]> {
  const leases = new Map<string, StoredObject>();
  const beats = new Map<string, StoredObject>();
  for await (const object of storage.list(folder)) {
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
