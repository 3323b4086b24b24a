import type { CodeBlock, CodeResult, ExecutionEvent, WorkspaceChanges } from "@fenced/core";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import type { DisplayRoom, FinishedBlock } from "./block-output.ts";
import { timeIsUp } from "./block-run.ts";
import type { RunEvents } from "./execution-stream.ts";
import { type BlockConditions, type BlockPlace, runBlock } from "./run-block.ts";
import { RunEnd } from "./run-end.ts";
import { combineResults } from "./run-result.ts";

/** Limits on the rich outputs of one result: their number and their bytes. */
const [mostDisplays, mostDisplayBytes] = [10_000, 268_435_456];

/** The room for the rich outputs of one result. */
export function newDisplayRoom(): DisplayRoom {
  return { count: mostDisplays, bytes: mostDisplayBytes };
}

/** The conditions under which a run's blocks run. */
interface RunConditions extends Pick<
  BlockConditions,
  "env" | "stdin" | "timeoutMs" | "maxOutputBytes" | "host" | "hostCall" | "cutOff"
> {
  /** Watches each block. Default: nobody does. */
  readonly telemetry: ExecutorTelemetry | undefined;
  /** Returns whether the session was lost since the last result, and resets that because it is then reported. */
  readonly takeLoss: () => boolean;
  /** Learns of each block that has ended. Default: nobody does. */
  readonly ended?: ((block: FinishedBlock) => void) | undefined;
  /** Finds out what the blocks changed in the workspace; never throws. Default: that is not known. */
  readonly changes?: (() => Promise<WorkspaceChanges>) | undefined;
}

/** What ends a run. */
interface RunLimits {
  /** End the run, which then rejects with the reason. */
  readonly signals: readonly (AbortSignal | undefined)[];
  /** The run's time in milliseconds. When it is up, the run resolves with the results so far. */
  readonly totalTimeoutMs: number;
  /** Gets the events as they come. Default: nobody does. */
  readonly events: RunEvents | undefined;
}

/** One call of an executor, from its first wait to its result: blocks one after another, within limits. */
export class Run {
  readonly #events: RunEvents | undefined;
  readonly #deadline: number;
  readonly #end: RunEnd;

  constructor({ signals, totalTimeoutMs, events }: RunLimits) {
    this.#events = events;
    this.#deadline = performance.now() + totalTimeoutMs;
    this.#end = events ? new RunEnd([...signals, events.left], () => events.drop()) : new RunEnd(signals);
  }

  /**
   * Waits for what the run needs before its blocks.
   *
   * @param prepare - must reject with the signal's reason once it is aborted.
   * @returns `undefined` if the run's time is up first.
   * @throws the reason of the first of the run's signals to abort.
   */
  async prepare<T>(prepare: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const lift = this.#end.after(this.#deadline - performance.now());
    try {
      return await prepare(this.#end.signal);
    } catch (error) {
      if (error === timeIsUp) return undefined;
      throw error;
    } finally {
      lift();
    }
  }

  /** Runs the blocks one after another, up to the first that fails, or until the time is up. */
  async blocks(
    blocks: readonly CodeBlock[],
    place: BlockPlace,
    { telemetry, takeLoss, ended, changes: findChanges, ...conditions }: RunConditions,
  ): Promise<CodeResult> {
    const events = this.#events;
    const started = performance.now();
    const finished: FinishedBlock[] = [];
    const displayRoom = newDisplayRoom();
    let { maxOutputBytes } = conditions;
    for (const [index, block] of blocks.entries()) {
      if (performance.now() >= this.#deadline) break;
      this.#end.throwIfRejected();
      if (events) await this.#tell(events, { type: "block-start", index, block });
      const timeoutMs = Math.min(conditions.timeoutMs, this.#deadline - performance.now());
      const limited = { ...conditions, index, end: this.#end, events, timeoutMs, maxOutputBytes, displayRoom };
      const run = (): Promise<FinishedBlock> => runBlock(block, place, limited);
      const end = await (telemetry ? telemetry.watchBlock({ ...block, index }, events, run) : run());
      finished.push(end);
      ended?.(end);
      maxOutputBytes -= end.keptBytes;
      if (events) await this.#tell(events, { type: "block-end", index, result: end.result });
      if (end.result.exitCode !== 0) break;
    }
    const durationMs = performance.now() - started;
    const changes = await findChanges?.();
    return combineResults(finished, {
      complete: finished.length === blocks.length,
      durationMs,
      lost: takeLoss(),
      changes,
    });
  }

  /** Call this when the run is over. */
  settle(): void {
    this.#end.settle();
  }

  /** Waits until the consumer has used the event. */
  async #tell(events: RunEvents, event: ExecutionEvent): Promise<void> {
    await events.write(event);
    this.#end.throwIfRejected();
  }
}
