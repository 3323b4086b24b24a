import { type CheckpointStore, type CodeExecutor, InvalidInputError } from "@fenced/core";
import { afterMs } from "@fenced/core/abort";
import type { SessionLease } from "../directory/session-lease.ts";

/** How a session keeps checkpoints. */
export interface SessionCheckpointsOptions {
  readonly lease: SessionLease;
  readonly store: CheckpointStore;
  /** Time limit for one checkpoint, in milliseconds. */
  readonly limitMs: number;
  /** Receives errors that no caller waits for. */
  readonly onError: (error: unknown) => void;
}

/** The checkpoints of one session: the directory knows the last one, and earlier ones are deleted. */
export class SessionCheckpoints {
  readonly #options: SessionCheckpointsOptions;
  /** Checkpoints of this session in the store, of which the directory knows one. */
  readonly #kept = new Set<string>();
  #taking: Promise<void> | undefined;
  /** Begins when the current one has ended. */
  #next: Promise<void> | undefined;

  constructor(options: SessionCheckpointsOptions) {
    this.#options = options;
    const { checkpoint } = options.lease.note;
    if (checkpoint !== undefined) this.#kept.add(checkpoint);
  }

  /**
   * Keeps everything that happened before this call. Calls that come meanwhile share the next checkpoint. If another
   * process has taken the session, nothing changes: the directory still knows the earlier one.
   */
  take(executor: CodeExecutor): Promise<void> {
    if (this.#next) return this.#next;
    if (!this.#taking) return this.#begin(executor);
    const next = this.#taking
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#begin(executor);
      });
    this.#next = next;
    return next;
  }

  /** Deletes all of them. */
  async deleteAll(): Promise<void> {
    await this.#delete([...this.#kept]);
  }

  #begin(executor: CodeExecutor): Promise<void> {
    const taking = this.#take(executor).finally(() => {
      if (this.#taking === taking) this.#taking = undefined;
    });
    this.#taking = taking;
    return taking;
  }

  async #take(executor: CodeExecutor): Promise<void> {
    const { lease, store, limitMs } = this.#options;
    const { stateful, languages } = executor.capabilities;
    const late = new AbortController();
    const cancel = afterMs(limitMs, () => late.abort(new DOMException("The checkpoint took too long", "TimeoutError")));
    try {
      const variables = stateful && languages.includes("python");
      const receipt = await executor.checkpoint?.({ store, variables, signal: late.signal });
      if (!receipt) throw noCheckpoints();
      const { id } = receipt;
      this.#kept.add(id);
      // If the directory does not answer, it may know this one or the one before: both stay until it does.
      const isKnown = await lease.update({ checkpoint: id });
      await this.#delete([...this.#kept].filter((each) => (each === id) !== isKnown));
    } finally {
      cancel();
    }
  }

  async #delete(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      try {
        await this.#options.store.delete(id);
        this.#kept.delete(id);
      } catch (error) {
        this.#options.onError(error);
      }
    }
  }
}

/** The error for executors that cannot take checkpoints. */
export function noCheckpoints(): InvalidInputError {
  return new InvalidInputError("Sessions cannot be kept: the executor takes no checkpoints", {
    remedy: "Create executors that have the method checkpoint(), as all of Fenced's do, or leave out `checkpoints`.",
    option: "checkpoints",
  });
}
