import type { CheckpointEntry, CheckpointIssue, CheckpointPart, CheckpointVariables } from "./checkpoint-content.ts";

/** A checkpoint in a store. */
export interface CheckpointInfo {
  /** The SHA-256 of its record, through which everything in the checkpoint is checked. */
  readonly id: string;
  readonly createdAt: Date;
  /** Number of regular files. */
  readonly files: number;
  /** Their total size in bytes. */
  readonly bytes: number;
  /** Names of its variables. */
  readonly variables: readonly string[];
  /** Why it cannot be used; absent if nothing is known to be wrong. The other fields then say nothing. */
  readonly problem?: string;
}

/** What a new checkpoint has besides files. */
export interface NewCheckpoint {
  /** Sorted by path, as `CheckpointEntry` describes it. */
  readonly entries: Iterable<CheckpointEntry>;
  readonly variables?: CheckpointVariables | undefined;
  /** What it does not have, or not as it was. */
  readonly incomplete: readonly CheckpointIssue[];
}

/** A checkpoint that is being written. Disposing of it discards what was not committed. */
export interface CheckpointWriter extends AsyncDisposable {
  /** Whether a part of an earlier checkpoint is still in the store, so that this checkpoint can have it. */
  has(part: CheckpointPart): Promise<boolean>;
  /**
   * Stores a part, unless the store has it. Calls may overlap.
   *
   * @param bytes - at most `checkpointPartBytes`; not to be changed until this resolves.
   */
  put(bytes: Uint8Array): Promise<CheckpointPart>;
  /** Completes the checkpoint. Call it once. @returns its id, and the bytes that were written to the store for it. */
  commit(checkpoint: NewCheckpoint): Promise<{ readonly id: string; readonly newBytes: number }>;
}

/** A checkpoint that is being read. */
export interface SavedCheckpoint {
  readonly info: CheckpointInfo;
  readonly variables: CheckpointVariables | undefined;
  /** What it does not have, or not as it was. */
  readonly incomplete: readonly CheckpointIssue[];
  /** Sorted by path. @throws CheckpointError if a part of the list is missing or damaged. */
  entries(): AsyncIterable<CheckpointEntry>;
  /** @throws CheckpointError if the part is missing or damaged: its hash is checked. */
  content(part: CheckpointPart): Promise<Uint8Array>;
}

/** What `sweep()` did. */
export interface SweepResult {
  /** Number of objects that were removed. */
  readonly removed: number;
  /** Their total size in bytes. */
  readonly bytes: number;
  /** Number of objects that no checkpoint needs, but one that is being written may: sweep again later. */
  readonly waiting: number;
}

/** Keeps checkpoints. Any number of programs may use the same store at the same time. */
export interface CheckpointStore {
  /**
   * Begins a checkpoint.
   *
   * @param options - `after`: the id of an earlier checkpoint, whose parts `has` then knows without asking for each.
   */
  begin(options?: { readonly after?: string | undefined }): Promise<CheckpointWriter>;
  /** Reads a checkpoint. @throws CheckpointError if there is none with this id, or it is damaged. */
  open(id: string): Promise<SavedCheckpoint>;
  /** All checkpoints, oldest first. */
  list(): Promise<CheckpointInfo[]>;
  /** Deletes a checkpoint, if there is one with this id. `sweep()` frees its space. */
  delete(id: string): Promise<void>;
  /**
   * Removes what no checkpoint needs. It may run at any time, in several programs, and beside checkpoints that are
   * being written and restored.
   *
   * @throws CheckpointError if a checkpoint is damaged, since nobody can tell what it needs: delete that one first.
   */
  sweep(): Promise<SweepResult>;
}

/** Which checkpoint an executor starts with. */
export interface RestoreOption {
  readonly store: CheckpointStore;
  readonly id: string;
}

/** Options of `checkpoint()`. */
export interface CheckpointOptions {
  /** Where to keep it. */
  readonly store: CheckpointStore;
  /** Keep the variables of a stateful Python session as well. Default: false. */
  readonly variables?: boolean | undefined;
  /**
   * Maximum size of all files together in bytes. Files beyond it are left out, and listed: sparse files can claim any
   * size. Default: 17,179,869,184 (16 GiB).
   */
  readonly maxBytes?: number | undefined;
  /** Cancels it; nothing is kept then. */
  readonly signal?: AbortSignal | undefined;
}

/** What `checkpoint()` kept. */
export interface CheckpointReceipt {
  /** Restores it: `new XExecutor({ restore: { store, id } })`. */
  readonly id: string;
  /** Number of regular files. */
  readonly files: number;
  /** Their total size in bytes. */
  readonly bytes: number;
  /** Bytes that were written to the store. */
  readonly newBytes: number;
  /** Names of the variables that it has. */
  readonly variables: readonly string[];
  /** Each file and variable that it does not have, or not as it was, with the reason. */
  readonly incomplete: readonly CheckpointIssue[];
}

/** What came back from a checkpoint. */
export interface RestoreReceipt {
  /** The checkpoint's id. */
  readonly id: string;
  /** Number of regular files that are there again. */
  readonly files: number;
  /** Their total size in bytes. */
  readonly bytes: number;
  /** Names of the variables that are there again. */
  readonly variables: readonly string[];
  /** Each file and variable that did not come back, or not as it was, with the reason. */
  readonly incomplete: readonly CheckpointIssue[];
}
