import type { CodeResult } from "../execution/code-result.ts";
import type { ExecuteOptions } from "../execution/execute-options.ts";
import type { ExecutionEvent } from "../execution/execution-event.ts";

/** Options of `submit`: those of `executeCodeBlocks`, without a signal, since `cancel` ends a submitted run. */
export interface SubmitOptions extends Omit<ExecuteOptions, "signal"> {
  /**
   * Identifies the run within the executor: a job's number, a tool call's id. Submitting the same blocks under the same
   * id again returns the same run. Default: a random UUID.
   */
  readonly id?: string | undefined;
}

/** Options of `SubmittedRun.events`. */
export interface RunEventsOptions {
  /** The `seq` of the last event that was seen; later ones are read. Default: 0, which reads from the beginning. */
  readonly after?: number | undefined;
  /** Ends the reading, which then throws its reason; the run goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** Events that are no longer kept. */
export interface RunGap {
  readonly type: "gap";
  /** How many events are missing. */
  readonly events: number;
}

/** An event of a submitted run, with its position. */
export interface RunEvent {
  /**
   * 1 for the first event; higher for each later one, by 1 or, in a session that outlives its program, sometimes more.
   * For a gap, the position of the last event that is missing.
   */
  readonly seq: number;
  readonly event: ExecutionEvent | RunGap;
}

/**
 * A run that keeps running when no one is waiting: `submit` begins it, and any number of readers can follow it, now or
 * later.
 */
export interface SubmittedRun {
  /** Identifies the run within its executor. */
  readonly id: string;
  /** Tells it from every other run, also from those that another executor runs under the same `id`. */
  readonly uuid: string;
  /** `"failed"`: `result` rejects, because the run was cancelled, the executor was stopped, or its backend broke down. */
  readonly state: "running" | "finished" | "failed";
  /** The `seq` of the last event so far; 0 before the first one. */
  readonly lastSeq: number;

  /**
   * Yields what has happened, then what happens, and ends after the `result`. The run does not wait for a reader: what is
   * no longer kept by the time it is read is replaced by a `gap`. Leaving the loop does not end the run.
   *
   * @throws the run's error after its last event if it failed; `options.signal.reason` if that is aborted first.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  events(options?: RunEventsOptions): AsyncIterable<RunEvent>;

  /**
   * Resolves to the result when the run has ended, as `executeCodeBlocks` does.
   *
   * @throws what `executeCodeBlocks` throws; an `AbortError` if the run was cancelled.
   */
  result(): Promise<CodeResult>;

  /** Kills what is running, like an abort. Resolves once the run has ended; does nothing if it has ended already. */
  cancel(): Promise<void>;
}
