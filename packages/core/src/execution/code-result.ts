import type { NetworkDecision } from "../network/network-policy.ts";
import type { Display } from "./display.ts";

/** How one block ended. The executors of Fenced make it with `makeBlockResult`: its text is in memory once. */
export interface BlockResult {
  /** 0: succeeded; 124: timed out; 153: it filled the workspace; else what the program said, 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** Standard output and standard error in order of arrival. */
  readonly output: string;
  /** Standard output alone: the part of `output` that came from there. In a notebook's kernel also the value of the last expression. */
  readonly stdout: string;
  /** Standard error alone: the part of `output` that came from there. */
  readonly stderr: string;
  /** Milliseconds from the block's start to its end. */
  readonly durationMs: number;
  /** The block was ended because its time, or that of the whole call, was up; the output up to then is kept. */
  readonly timedOut: boolean;
  /** The output was longer than what was left of `maxOutputBytes`; head and tail are kept, the cut is named with its size. */
  readonly truncated: boolean;
}

/**
 * How a run of blocks ended. The executors of Fenced make it with `makeCodeResult`: each byte of output is in memory once, in
 * the results of the blocks, and in the JSON of a result once. See there for what `JSON.stringify` makes of it.
 */
export interface CodeResult {
  /** 0: all blocks ran and succeeded; else the exit code of the block that failed; 124: it, or the whole call, timed out. */
  readonly exitCode: number;
  /** What a person at a terminal would have seen: standard output and standard error in order of arrival. */
  readonly output: string;
  /** Standard output alone, of all blocks that ran. */
  readonly stdout: string;
  /** Standard error alone, of all blocks that ran. */
  readonly stderr: string;
  /** Rich outputs of all blocks that ran, in order. */
  readonly displays: readonly Display[];
  /** Command-line executors: the first block's file, an absolute path on the host. */
  readonly codeFile?: string;
  /** A block's time (`timeoutMs`), or that of the whole call (`totalTimeoutMs`), was up. */
  readonly timedOut: boolean;
  /** The blocks' output together was longer than `maxOutputBytes`. */
  readonly truncated: boolean;
  /**
   * What earlier calls left in the session (variables, background processes, files outside of the workspace) is gone, because the
   * place where code runs broke down or had to be replaced.
   */
  readonly stateLost: boolean;
  /**
   * Requests that the executor's network policy refused while the blocks ran, each with the reason that the code was given:
   * different ones, in order, the first 50. Requests of other calls that ran at the same time are among them. Absent if none.
   */
  readonly network?: readonly NetworkDecision[];
  /** Milliseconds from the first block's start to the last one's end. */
  readonly durationMs: number;
  /** One result for each block that ran, in order. */
  readonly blocks: readonly BlockResult[];
}
