import type { ApproveHostCall, FunctionWithRequirements, HostFunction } from "@fenced/core";

/** What every executor can be told; an executor's own options extend it. */
export interface BaseExecutorOptions {
  /** Milliseconds that each block may take. `Infinity`: no limit. Default: 60,000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds that a whole call may take, with the wait for its turn and for the start. When they are over, what runs is killed
   * and the call resolves with what ran until then. `Infinity`: no limit. Default: no limit.
   */
  readonly totalTimeoutMs?: number;
  /**
   * Bytes of output that a result keeps in all, of both streams together. A block keeps head and tail of its output within what the
   * blocks before it left; a program that prints more goes on, and a stream carries everything. Default: 1,048,576.
   */
  readonly maxOutputBytes?: number;
  /**
   * Called when what earlier calls left in the session is gone (the container was killed, the kernel died, the connection broke),
   * as soon as the executor knows, also while nothing runs. The next result has `stateLost: true` besides. What it throws is
   * ignored. Not part of a dumped component.
   *
   * @param reason - a sentence that says what happened, for a log or a person.
   */
  readonly onSessionLost?: (reason: string) => void;
  /**
   * Bytes of disk space that the files in the workspace may take. A block that makes them take more is ended, with exit code 153 and
   * a sentence on standard error; it may run a moment longer, since the workspace is measured some times a second. Files outside of
   * the workspace do not count. Starting fails where the workspace cannot be measured. Default: no limit.
   */
  readonly maxWorkspaceBytes?: number;
  /** Environment variables of the blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Functions that blocks can import: those that travel to the code (`FunctionWithRequirements`), and those of this program that
   * the code calls from where it runs (`hostFunction`), in the languages of `capabilities.hostFunctions`.
   */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[];
  /**
   * Asked before each call of a host function, while the program waits and its time goes on. Not part of a dumped component.
   * Default: all calls are approved.
   */
  readonly approveHostCall?: ApproveHostCall;
  /** Calls of host functions that a block may make; more fail with an exception. Default: 256. */
  readonly maxHostCalls?: number;
  /** The module from which blocks import the functions: an identifier. Default: `functions`. */
  readonly functionsModule?: string;
}
