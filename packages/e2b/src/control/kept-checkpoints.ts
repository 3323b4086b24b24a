import type { CheckpointStore, CodeExecutor } from "@fenced/core";
import { E2BFailure } from "./e2b-failure.ts";
import type { Kept } from "./known-sandbox.ts";

/** How long after the last deletion the store's space is freed, in milliseconds. */
const sweepAfterMs = 30_000;

/** What paused sandboxes and snapshots keep. */
export interface KeptOptions {
  readonly store: CheckpointStore | undefined;
  readonly maxKept: number;
  readonly maxKeptBytes: number;
  readonly onError: (error: unknown) => void;
}

/** A checkpoint that was taken, with what it does not have. */
export interface TakenCheckpoint {
  readonly kept: Kept;
  /** A sentence for the client; `undefined` if everything is in it. */
  readonly missing: string | undefined;
}

/** The checkpoints of a server: as many, and as large, as its options allow. */
export class KeptCheckpoints {
  readonly #options: KeptOptions;
  /** How many sandboxes and snapshots have each of them: two can be the same. */
  readonly #kept = new Map<string, { readonly bytes: number; users: number }>();
  #taking = 0;
  #sweeping: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  /** @throws E2BFailure if this server keeps none. */
  get store(): CheckpointStore {
    const { store } = this.#options;
    if (store) return store;
    throw new E2BFailure(501, "This server cannot pause sandboxes or take snapshots: it has no store of checkpoints");
  }

  /** @throws E2BFailure if there is no room for it. */
  async take(executor: CodeExecutor, signal: AbortSignal): Promise<TakenCheckpoint> {
    const { store } = this;
    const { maxKept, maxKeptBytes, onError } = this.#options;
    const users = [...this.#kept.values()].reduce((sum, each) => sum + each.users, this.#taking);
    if (users >= maxKept) {
      throw new E2BFailure(
        507,
        `There are already ${maxKept} paused sandboxes and snapshots, the most that this server keeps: delete one`,
      );
    }
    this.#taking += 1;
    try {
      if (!executor.checkpoint) throw new E2BFailure(501, "The template's executor cannot take checkpoints");
      const maxBytes = Math.max(0, maxKeptBytes - this.#bytes);
      const { id, bytes, incomplete } = await executor.checkpoint({ store, maxBytes, signal });
      const kept = this.share({ id, bytes });
      // Those that had no room are the first to be listed. Others may have been taken meanwhile.
      if (this.#bytes > maxKeptBytes || incomplete.some(({ reason }) => reason.includes("`maxBytes`"))) {
        this.release(kept);
        const room = Math.max(0, maxKeptBytes - this.#bytes);
        throw new E2BFailure(507, `The files of the sandbox have more than ${room} bytes, for which there is room`);
      }
      const named = incomplete.slice(0, 20).map(({ name, reason }) => `${name}: ${reason}`);
      return { kept, missing: named.length === 0 ? undefined : `Not kept: ${named.join(" ")}` };
    } catch (error) {
      if (!(error instanceof E2BFailure) && !signal.aborted) onError(error);
      throw error;
    } finally {
      this.#taking -= 1;
    }
  }

  /** One more has it. */
  share(kept: Kept): Kept {
    const known = this.#kept.get(kept.id);
    if (known) known.users += 1;
    else this.#kept.set(kept.id, { bytes: kept.bytes, users: 1 });
    return kept;
  }

  /** One fewer has it; the last one deletes it. */
  release(kept: Kept | undefined): void {
    const known = kept && this.#kept.get(kept.id);
    if (!known) return;
    known.users -= 1;
    if (known.users > 0) return;
    this.#kept.delete(kept.id);
    void this.#delete(kept.id);
  }

  /** Deletes everything in the store that nobody has: what a server left that was killed. */
  async deleteUnknown(): Promise<void> {
    const { onError } = this.#options;
    try {
      const found = await this.store.list();
      for (const { id } of found) if (!this.#kept.has(id)) await this.#delete(id);
    } catch (error) {
      onError(error);
    }
  }

  /** Frees no more space. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#sweeping);
  }

  /** Deletes all of them, when nobody can ask for them any more. */
  async deleteAll(): Promise<void> {
    const ids = [...this.#kept.keys()];
    this.#kept.clear();
    for (const id of ids) await this.#delete(id);
    this.close();
    if (ids.length > 0) await this.#options.store?.sweep().catch(this.#options.onError);
  }

  /** The size of all of them together. */
  get #bytes(): number {
    return [...this.#kept.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  async #delete(id: string): Promise<void> {
    const { store, onError } = this.#options;
    await store?.delete(id).catch(onError);
    if (this.#isClosed) return;
    clearTimeout(this.#sweeping);
    this.#sweeping = setTimeout(() => void store?.sweep().catch(onError), sweepAfterMs);
    this.#sweeping.unref();
  }
}
