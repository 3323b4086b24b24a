import {
  makeCodeResult,
  type BlockResult,
  type CodeResult,
  type Display,
  type NetworkDecision,
  type WorkspaceChanges,
} from "@fenced/core";
import { type FinishedBlock, timedOutExitCode } from "./block-output.ts";
import { combineUsage } from "./combine-usage.ts";

/** Maximum number of refusals of the network policy that a result keeps. */
const mostRefusals = 50;

/**
 * Combines the blocks' results into that of the run. A run whose blocks all succeeded timed out if it did not get
 * through all of them.
 */
export function combineResults(
  finished: readonly FinishedBlock[],
  {
    complete,
    durationMs,
    lost,
    changes,
  }: {
    readonly complete: boolean;
    readonly durationMs: number;
    readonly lost: boolean;
    readonly changes?: WorkspaceChanges | undefined;
  },
): CodeResult {
  const codeFile = finished[0]?.codeFile;
  const blocks: BlockResult[] = [];
  const displays: Display[] = [];
  const refused: NetworkDecision[] = [];
  let [exitCode, timedOut, truncated, stateLost] = [0, false, false, lost];
  for (const block of finished) {
    blocks.push(block.result);
    displays.push(...block.displays);
    refused.push(...block.network);
    exitCode = block.result.exitCode;
    timedOut ||= block.result.timedOut;
    truncated ||= block.result.truncated;
    stateLost ||= block.stateLost;
  }
  const usage = combineUsage(finished.map((block) => block.usage));
  const timeWasUp = exitCode === 0 && !complete;
  return makeCodeResult({
    exitCode: timeWasUp ? timedOutExitCode : exitCode,
    displays,
    ...(codeFile === undefined ? {} : { codeFile }),
    timedOut: timeWasUp || timedOut,
    truncated,
    stateLost,
    ...(refused.length === 0 ? {} : { network: distinctRefusals(refused) }),
    ...(changes && { changes }),
    ...(usage && { usage }),
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
