import type { CheckpointOptions, CheckpointReceipt, RestoreOption, RestoreReceipt } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import type { Place } from "../place.ts";
import type { BlockOutcome, BlockRun } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import { Issues } from "./issues.ts";
import { KeptFiles } from "./kept-files.ts";
import { restoreFiles } from "./restore-checkpoint.ts";
import { checkVariables, keepVariables, loseVariables, noVariables, restoreVariables } from "./session-variables.ts";
import { takeCheckpoint } from "./take-checkpoint.ts";

/** A place, and whether its Python blocks share their variables. */
interface OpenPlace {
  readonly place: Place;
  readonly isStateful: boolean;
}

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
  async restoreTo({ place, isStateful }: OpenPlace, signal: AbortSignal): Promise<void> {
    const { files } = place;
    this.#kept.forgetStates();
    if (!this.#restore) return;
    const { store, id } = this.#restore;
    if (this.restored && (await files.list()).length > 0) return;
    const saved = await untilAborted(store.open(id), signal);
    if (isStateful) await checkVariables(saved, signal);
    const issues = new Issues();
    issues.addAll(saved.incomplete);
    const { found, ...counted } = await restoreFiles(saved, files, { issues, signal });
    const kept = [...found.values()].map(({ path, parts }) => [path, { parts, state: undefined }] as const);
    this.#kept.remember(store, { id, files: new Map(kept) });
    const variables = isStateful ? await restoreVariables(place, { saved, issues, signal }) : [];
    if (!isStateful) loseVariables(saved, issues, "This executor keeps no variables between blocks");
    this.restored = { id, ...counted, variables, incomplete: issues.all };
  }

  /** Takes a checkpoint of an open place. */
  async take(
    { place, isStateful }: OpenPlace,
    { store, maxBytes, variables = false }: CheckpointOptions,
    signal: AbortSignal,
  ): Promise<CheckpointReceipt> {
    const { files, facts } = place;
    const { workspacePath } = facts;
    if (variables && !isStateful) throw noVariables();
    const runs: Promise<unknown>[] = [];
    const copy = place.copy?.bind(place);
    const python = {
      files,
      facts,
      ...(copy && { copy }),
      run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
        const run = place.run(block, sink);
        runs.push(run);
        return run;
      },
    };
    const taken = takeCheckpoint({
      store,
      files,
      workspacePath,
      maxBytes,
      signal,
      kept: this.#kept,
      variables: variables ? (writer, issues) => keepVariables(python, { writer, issues, signal }) : undefined,
    });
    try {
      // The store may not answer.
      return await untilAborted(taken, signal);
    } catch (error) {
      // The next call must not find the interpreter writing variables.
      await Promise.allSettled(runs);
      // It may have been completing the checkpoint, whose id nobody gets.
      void taken.then(({ id }) => store.delete(id)).catch(() => {});
      throw error;
    }
  }
}
