import type { CodeBlock, CodeResult, ExecutionEvent } from "@fenced/core";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import { aggregateResult, type FinishedBlock } from "./aggregate-result.ts";
import type { BlockEvent, BlockOutcome } from "./block-run.ts";
import { runOneBlock, type BlockConditions } from "./run-one-block.ts";

/** Under which conditions blocks run. */
export interface RunConditions extends Omit<BlockConditions, "index"> {
  readonly telemetry: ExecutorTelemetry;
  /** Starts a block under the signal given. */
  readonly start: (block: CodeBlock, signal: AbortSignal) => AsyncGenerator<BlockEvent, BlockOutcome, void>;
}

/** Runs blocks one after another, up to the first that fails. */
export async function* runInOrder(
  blocks: readonly CodeBlock[],
  conditions: RunConditions,
): AsyncGenerator<ExecutionEvent, CodeResult, void> {
  const { start, telemetry, signal } = conditions;
  const started = performance.now();
  const finished: FinishedBlock[] = [];
  for (const [index, block] of blocks.entries()) {
    signal.throwIfAborted();
    yield { type: "block-start", index, block };
    signal.throwIfAborted();
    const run = () => runOneBlock((limit) => start(block, limit), { ...conditions, index });
    const end = yield* telemetry.watchBlock({ ...block, index }, run);
    finished.push(end);
    yield { type: "block-end", index, result: end.result };
    if (end.result.exitCode !== 0) break;
  }
  return aggregateResult(finished, performance.now() - started);
}
