import type { HostFunction } from "../functions/host/host-function.ts";

/** What one call may say about its blocks, over the executor's own settings. */
export interface ExecuteOptions {
  /**
   * Ends the run: everything that the current block started is killed, and once it is all dead the call rejects with
   * `signal.reason`. A signal that is already aborted means that nothing runs.
   */
  readonly signal?: AbortSignal;
  /** Milliseconds that each block may take. `Infinity`: no limit. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds that the whole call may take, with the wait for its turn and for the executor's start. When they are over, what
   * runs is killed and the call resolves with what ran until then, `timedOut` and the exit code 124. `Infinity`: no limit.
   * Default: the executor's own, none.
   */
  readonly totalTimeoutMs?: number;
  /** Environment variables for the blocks, over the executor's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** What each block reads from its standard input. Default: closed, so `input()` fails instead of hanging. */
  readonly stdin?: string;
  /**
   * Functions of this program that the blocks of this call can call besides the executor's own: for what depends on who asks, such
   * as a request's user. One with the name of an executor's host function takes its place. Only for executors with
   * `capabilities.hostFunctions`. Default: none.
   */
  readonly functions?: readonly HostFunction[];
}
