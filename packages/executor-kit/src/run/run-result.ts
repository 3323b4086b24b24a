import { makeCodeResult, type CodeResult, type NetworkDecision } from "@fenced/core";
import { type FinishedBlock, timedOutExitCode } from "./block-output.ts";

/** Maximum number of refusals of the network policy that a result keeps. */
const mostRefusals = 50;

/**
 * Combines the blocks' results into that of the run. A run whose blocks all succeeded timed out if it did not get
 * through all of them.
 */
export function combineResults(
  finished: readonly FinishedBlock[],
  { complete, durationMs, lost }: { readonly complete: boolean; readonly durationMs: number; readonly lost: boolean },
): CodeResult {
  const blocks = finished.map((block) => block.result);
  const codeFile = finished[0]?.codeFile;
  const exitCode = blocks.at(-1)?.exitCode ?? 0;
  const timeWasUp = exitCode === 0 && !complete;
  const refused = finished.flatMap((block) => block.network);
  return makeCodeResult({
    exitCode: timeWasUp ? timedOutExitCode : exitCode,
    displays: finished.flatMap((block) => block.displays),
    ...(codeFile === undefined ? {} : { codeFile }),
    timedOut: timeWasUp || blocks.some((block) => block.timedOut),
    truncated: blocks.some((block) => block.truncated),
    stateLost: lost || finished.some((block) => block.stateLost),
    ...(refused.length === 0 ? {} : { network: distinctRefusals(refused) }),
    durationMs,
    blocks,
  });
}

/** The first refusals, as many as a result keeps; repeated attempts count once. */
export function distinctRefusals(decisions: readonly NetworkDecision[]): readonly NetworkDecision[] {
  const isSame = (one: NetworkDecision, other: NetworkDecision): boolean =>
    one.host === other.host && one.port === other.port && one.reason === other.reason;
  return decisions
    .filter((decision, index) => decisions.findIndex((other) => isSame(other, decision)) === index)
    .slice(0, mostRefusals);
}
