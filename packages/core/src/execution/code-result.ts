import type { NetworkDecision } from "../network/network-policy.ts";
import type { Display } from "./display.ts";
import type { RunUsage } from "./run-usage.ts";
import type { WorkspaceChanges } from "./workspace-changes.ts";

/**
 * How one block ended. Fenced's executors create it with `makeBlockResult`, which keeps its text in memory only once.
 */
export interface BlockResult {
  /**
   * 0: success; 124: timed out; 153: filled the workspace; otherwise the program's own code, or 128 + n if signal n
   * ended it.
   */
  readonly exitCode: number;
  /** Standard output and standard error, in order of arrival. */
  readonly output: string;
  /** Standard output alone. In a notebook kernel it also contains the value of the last expression. */
  readonly stdout: string;
  /** Standard error alone. */
  readonly stderr: string;
  /** The block's duration in milliseconds. */
  readonly durationMs: number;
  /** The block ran out of its own time, or of the whole call's; the output up to then is kept. */
  readonly timedOut: boolean;
  /**
   * The output exceeded what was left of `maxOutputBytes`; its head and tail are kept, with a line that gives the size
   * of the cut.
   */
  readonly truncated: boolean;
}

/**
 * How a run of blocks ended. Fenced's executors create it with `makeCodeResult`, which keeps each byte of output once
 * in memory, in the blocks' results, and once in JSON; it also describes what `JSON.stringify` writes.
 */
export interface CodeResult {
  /**
   * 0 if all blocks ran and succeeded; otherwise the exit code of the block that failed; 124 if it, or the whole call,
   * timed out.
   */
  readonly exitCode: number;
  /** What a terminal would have shown: standard output and standard error, in order of arrival. */
  readonly output: string;
  /** Standard output of all blocks that ran. */
  readonly stdout: string;
  /** Standard error of all blocks that ran. */
  readonly stderr: string;
  /** Rich outputs of all blocks that ran, in order. */
  readonly displays: readonly Display[];
  /** The absolute path of the first block's file on this host; absent if the block has no file there. */
  readonly codeFile?: string;
  /** A block (`timeoutMs`) or the whole call (`totalTimeoutMs`) timed out. */
  readonly timedOut: boolean;
  /** The blocks' combined output exceeded `maxOutputBytes`. */
  readonly truncated: boolean;
  /**
   * What earlier calls left in the session (variables, background processes, files outside the workspace) is gone,
   * because the backend broke down or had to be replaced.
   */
  readonly stateLost: boolean;
  /**
   * Distinct requests that the executor's network policy refused while the blocks ran, in order, each with the reason
   * the code was given; at most 50. They may include requests of other calls that ran at the same time. Absent if there
   * were none.
   */
  readonly network?: readonly NetworkDecision[];
  /**
   * What changed in the workspace from before the first block to after the last one, including what other calls and
   * background processes did meanwhile; the block's own file counts if it has a name (`# filename:`). Absent unless the
   * executor's option `changes` asks for it, and it can know.
   */
  readonly changes?: WorkspaceChanges;
  /**
   * What the blocks that ran used, as far as the executor can know (`capabilities.usage`), also of blocks that timed out.
   * Absent if nothing is known.
   */
  readonly usage?: RunUsage;
  /**
   * Why the run is not in the record that the option `record` names, although it could be opened before the run. Absent if
   * it is, or there is no such option.
   */
  readonly unrecorded?: string;
  /** Milliseconds from the start of the first block to the end of the last one. */
  readonly durationMs: number;
  /** One result for each block that ran, in order. */
  readonly blocks: readonly BlockResult[];
}
