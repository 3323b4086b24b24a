import type { ApproveHostCall, FunctionWithRequirements, HostFunction } from "@fenced/core";

/** Options of every executor; each executor's own options extend them. */
export interface BaseExecutorOptions {
  /** Time limit for each block in milliseconds. `Infinity`: no limit. Default: 60,000. */
  readonly timeoutMs?: number;
  /**
   * Time limit for a whole call in milliseconds, including the wait for its turn and for the start. When it expires,
   * what is running is killed and the call resolves with the results so far. `Infinity`: no limit. Default: no limit.
   */
  readonly totalTimeoutMs?: number;
  /**
   * Bytes of output that a result keeps, for both streams together. Each block keeps the head and tail of its output
   * within what earlier blocks left; a program that prints more continues to run, and a stream carries everything.
   * Default: 1,048,576.
   */
  readonly maxOutputBytes?: number;
  /**
   * Called when what earlier calls left in the session is gone (the container was killed, the kernel died, the
   * connection broke), as soon as the executor knows, even while nothing runs. The next result also has
   * `stateLost: true`. Errors that it throws are ignored. Not part of a dumped component.
   *
   * @param reason - a sentence that says what happened, for a log or a person.
   */
  readonly onSessionLost?: (reason: string) => void;
  /**
   * Limit on the disk space of the workspace's files in bytes. A block that exceeds it is ended with exit code 153 and
   * a sentence on standard error, possibly a moment later, since the workspace is measured several times a second.
   * Files outside the workspace do not count. The start fails if the workspace cannot be measured. Default: no limit.
   */
  readonly maxWorkspaceBytes?: number;
  /** Environment variables of the blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Functions that blocks can import: those that travel to the code (`FunctionWithRequirements`), and those that run in
   * this program when the code calls them (`hostFunction`), in the languages of `capabilities.hostFunctions`.
   */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[];
  /**
   * Asked before each call of a host function, while the program waits and its time limit keeps running. Not part of a
   * dumped component. Default: all calls are approved.
   */
  readonly approveHostCall?: ApproveHostCall;
  /** Maximum number of host function calls per block; further calls fail with an exception. Default: 256. */
  readonly maxHostCalls?: number;
  /** The name of the module from which blocks import the functions: an identifier. Default: `functions`. */
  readonly functionsModule?: string;
}
