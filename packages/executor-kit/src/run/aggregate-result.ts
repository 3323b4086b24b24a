import type { BlockResult, CodeResult, Display } from "@fenced/core";

/** One block's result and what only the whole run reports. */
export interface FinishedBlock {
  readonly result: BlockResult;
  readonly displays: readonly Display[];
  readonly codeFile?: string;
  readonly stateLost: boolean;
}

/** The run's result from those of its blocks, of which there is at least one. */
export function aggregateResult(finished: readonly FinishedBlock[], durationMs: number): CodeResult {
  const blocks = finished.map((block) => block.result);
  const codeFile = finished[0]?.codeFile;
  return {
    exitCode: blocks.at(-1)?.exitCode ?? 0,
    output: blocks.map((block) => block.output).join(""),
    stdout: blocks.map((block) => block.stdout).join(""),
    stderr: blocks.map((block) => block.stderr).join(""),
    displays: finished.flatMap((block) => block.displays),
    ...(codeFile === undefined ? {} : { codeFile }),
    timedOut: blocks.some((block) => block.timedOut),
    truncated: blocks.some((block) => block.truncated),
    stateLost: finished.some((block) => block.stateLost),
    durationMs,
    blocks,
  };
}
