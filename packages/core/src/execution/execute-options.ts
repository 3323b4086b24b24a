import type { HostFunction } from "../functions/host/host-function.ts";

/** Options of one call; they override the executor's own settings. */
export interface ExecuteOptions {
  /**
   * Cancels the run: kills everything that the current block started and, once all of it is dead, rejects with
   * `signal.reason`. If the signal is already aborted, nothing runs.
   */
  readonly signal?: AbortSignal | undefined;
  /** Time limit for each block in milliseconds; `Infinity` for no limit. Default: the executor's, which is 60,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Time limit for the whole call in milliseconds, including the wait for its turn and for the executor's start. When
   * it expires, what is running is killed and the call resolves with the results so far, `timedOut` and exit code 124.
   * `Infinity` for no limit. Default: the executor's, which is none.
   */
  readonly totalTimeoutMs?: number | undefined;
  /** Environment variables for the blocks; they override the executor's. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** What each block reads from its standard input. Default: closed, so `input()` fails instead of hanging. */
  readonly stdin?: string | undefined;
  /**
   * Functions of this program that the blocks of this call can call besides the executor's own, for what depends on the
   * caller, such as a request's user. Each user still needs an executor of their own: a process that one block leaves
   * behind can call the functions of the next. A function replaces the executor's host function of the same name. Only for
   * executors with `capabilities.hostFunctions`. Default: none.
   */
  readonly functions?: readonly HostFunction[] | undefined;
}
