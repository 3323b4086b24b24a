import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError } from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import type { BackendFiles } from "../workspace/backend-files.ts";
import { timeIsUp, type BlockEvent, type BlockOutcome } from "./block-run.ts";

/** Interval between measurements of the workspace in milliseconds; longer if measuring takes longer. */
const lookMs = 100;
/** Maximum share of the time to spend on measuring. */
const measuringShare = 0.2;
/** Bytes that the executor itself may add while a block runs: the block's file. */
const ownFilesBytes = 1_048_576;
/** The exit code of a program that the system ends because a file is too large: 128 + SIGXFSZ. */
const workspaceFullExitCode = 153;

/** A block's limit, and how to measure the workspace. */
export interface WorkspaceLimit {
  readonly measure: NonNullable<BackendFiles["diskUsage"]>;
  readonly maxBytes: number;
}

/**
 * Runs a block, and ends it if the workspace grows beyond its limit. If the workspace already exceeds the limit, the
 * block may run as long as it adds nothing, since it may be about to remove files.
 */
export async function* guardWorkspace(
  run: (signal: AbortSignal) => AsyncGenerator<BlockEvent, BlockOutcome, void>,
  signal: AbortSignal,
  { measure, maxBytes }: WorkspaceLimit,
): AsyncGenerator<BlockEvent, BlockOutcome, void> {
  const ending = new AbortController();
  const unfollow = followSignals(ending, [signal]);
  const watching = new AbortController();
  const allowed = Math.max(maxBytes, (await usage(measure, Infinity)) + ownFilesBytes);
  const watch = watchUsage(() => usage(measure, allowed), { allowed, signal: watching.signal }).then((grown) => {
    // As with a timeout, its output and outcome are still reported.
    if (grown) ending.abort(timeIsUp);
    return grown;
  });
  try {
    const outcome = yield* run(ending.signal);
    watching.abort();
    const full = (await watch) || (!signal.aborted && (await usage(measure, allowed)) > allowed);
    if (!full) return outcome;
    yield { type: "stderr", data: sentence(maxBytes) };
    return { ...outcome, exitCode: workspaceFullExitCode };
  } finally {
    watching.abort();
    unfollow();
  }
}

/** The error for a limit that the session cannot enforce. */
export function notMeasurable(): InvalidInputError {
  return new InvalidInputError(
    "`maxWorkspaceBytes` cannot be enforced here: the workspace cannot be measured while code runs",
    {
      remedy: "Leave it out, and limit the disk where the code runs, with a sized volume or a quota.",
    },
  );
}

/** Resolves to true if the workspace exceeds the limit before the signal is aborted. */
async function watchUsage(
  look: () => Promise<number>,
  { allowed, signal }: { readonly allowed: number; readonly signal: AbortSignal },
): Promise<boolean> {
  for (let wait = lookMs; ;) {
    await sleep(wait, undefined, { signal }).catch(() => {});
    if (signal.aborted) return false;
    const started = performance.now();
    if ((await look()) > allowed) return true;
    wait = Math.max(lookMs, (performance.now() - started) / measuringShare);
  }
}

/** Returns zero if the workspace cannot be measured now, because code is changing it or the backend is gone. */
async function usage(measure: WorkspaceLimit["measure"], atMost: number): Promise<number> {
  return measure(atMost).catch(() => 0);
}

function sentence(maxBytes: number): string {
  const size = maxBytes < 1_048_576 ? `${maxBytes} bytes` : `${Math.floor(maxBytes / 1_048_576)} MiB`;
  return `\nThe program was killed: the files in the working directory exceed the limit of ${size}. Remove files that are not needed, or write less.\n`;
}
