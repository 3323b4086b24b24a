import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError } from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import type { Place } from "../place.ts";
import { timeIsUp, type BlockOutcome } from "./block-run.ts";
import type { Sink } from "./sink.ts";

/** Interval between measurements of the workspace in milliseconds; longer if measuring takes longer. */
const lookMs = 100;
/** Maximum share of the time to spend on measuring. */
const measuringShare = 0.2;
/** Bytes that the executor itself may add while a block runs: the block's file. */
const ownFilesBytes = 1_048_576;
/** The exit code of a program that the system ends because a file is too large: 128 + SIGXFSZ. */
const workspaceFullExitCode = 153;

/**
 * Runs a block, and ends it if the workspace grows beyond its limit. If the workspace already exceeds the limit, the
 * block may run as long as it adds nothing, since it may be about to remove files.
 *
 * @param maxBytes - the limit.
 */
export async function guardWorkspace(
  place: Pick<Place, "files" | "diskUsage">,
  maxBytes: number,
  sink: Sink,
  run: (sink: Sink) => Promise<BlockOutcome>,
): Promise<BlockOutcome> {
  const usage = async (atMost: number): Promise<number> => diskUsage(place, atMost);
  const ending = new AbortController();
  const unfollow = followSignals(ending, [sink.signal]);
  const watching = new AbortController();
  const allowed = Math.max(maxBytes, (await usage(Infinity)) + ownFilesBytes);
  const watch = watchUsage(() => usage(allowed), { allowed, signal: watching.signal }).then((grown) => {
    // As with a timeout, its output and outcome are still reported.
    if (grown) ending.abort(timeIsUp);
    return grown;
  });
  try {
    const outcome = await run({ signal: ending.signal, write: (event) => sink.write(event) });
    watching.abort();
    const full = (await watch) || (!sink.signal.aborted && (await usage(allowed)) > allowed);
    if (!full) return outcome;
    void sink.write({ type: "stderr", data: workspaceFull(maxBytes) });
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
async function diskUsage(place: Pick<Place, "files" | "diskUsage">, atMost: number): Promise<number> {
  try {
    return (await (place.diskUsage?.(atMost) ?? place.files.diskUsage?.(atMost))) ?? 0;
  } catch {
    return 0;
  }
}

/** What is added to the output of a program that was ended because of the limit. */
export function workspaceFull(maxBytes: number): string {
  const size = maxBytes < 1_048_576 ? `${maxBytes} bytes` : `${Math.floor(maxBytes / 1_048_576)} MiB`;
  return `\nThe program was killed: the files in the working directory exceed the limit of ${size}. Remove files that are not needed, or write less.\n`;
}
