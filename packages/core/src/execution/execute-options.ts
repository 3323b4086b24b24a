/** What one call may say about its blocks, over the executor's own settings. */
export interface ExecuteOptions {
  /**
   * Ends the run: everything that the current block started is killed, and once it is all dead the call rejects with
   * `signal.reason`. A signal that is already aborted means that nothing runs.
   */
  readonly signal?: AbortSignal;
  /** Milliseconds that each block may take. `Infinity`: no limit. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /** Environment variables for the blocks, over the executor's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** What each block reads from its standard input. Default: closed, so `input()` fails instead of hanging. */
  readonly stdin?: string;
}
