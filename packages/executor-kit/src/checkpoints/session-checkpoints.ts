import {
  type CheckpointOptions,
  type CheckpointReceipt,
  InvalidInputError,
  type RestoreOption,
  type RestoreReceipt,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import type { Place } from "../place.ts";
import { Issues } from "./issues.ts";
import { KeptFiles, type KeptFile } from "./kept-files.ts";
import { restoreFiles } from "./restore-checkpoint.ts";
import { takeCheckpoint } from "./take-checkpoint.ts";

/** The checkpoints of one executor: the one that it starts with, and those that it makes. */
export class SessionCheckpoints {
  readonly #restore: RestoreOption | undefined;
  readonly #kept = new KeptFiles();
  /** What came back at the last start. */
  restored: RestoreReceipt | undefined;

  constructor(restore: RestoreOption | undefined) {
    this.#restore = restore;
  }

  /**
   * Restores what the executor starts with, if anything, in a place that has just been opened. The place of a session after the
   * first one may have the files of earlier ones, which are newer: it gets a checkpoint only if it is empty.
   *
   * @throws CheckpointError if the checkpoint is missing or damaged; the workspace is then as it was.
   */
  async restoreTo({ files }: Pick<Place, "files">, signal: AbortSignal): Promise<void> {
    this.#kept.forgetStates();
    if (!this.#restore) return;
    const { store, id } = this.#restore;
    if (this.restored && (await files.list()).length > 0) return;
    const saved = await untilAborted(store.open(id), signal);
    const issues = new Issues();
    issues.addAll(saved.incomplete);
    const kept = new Map<string, KeptFile>();
    const counted = await restoreFiles(saved, files, {
      issues,
      signal,
      onFile: ({ path, parts }) => kept.set(path, { parts, state: undefined }),
    });
    this.#kept.remember(store, { id, files: kept });
    this.restored = { id, ...counted, variables: [], incomplete: issues.all };
  }

  /** Takes a checkpoint of an open place. */
  async take(
    place: Pick<Place, "files" | "facts">,
    { store, maxBytes, variables = false }: CheckpointOptions,
    signal: AbortSignal,
  ): Promise<CheckpointReceipt> {
    const { files, facts } = place;
    const { workspacePath } = facts;
    if (variables) throw noVariables();
    // The store may not answer.
    return untilAborted(takeCheckpoint({ store, files, workspacePath, maxBytes, signal, kept: this.#kept }), signal);
  }
}

function noVariables(): InvalidInputError {
  return new InvalidInputError("Checkpoints cannot keep variables yet", { remedy: "Leave out `variables`." });
}
