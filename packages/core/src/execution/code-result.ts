import type { Display } from "./display.ts";

/** How one block ended. */
export interface BlockResult {
  /** 0: succeeded; 124: timed out; else what the program said, 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** Standard output and standard error in order of arrival. */
  readonly output: string;
  /** Standard output alone. */
  readonly stdout: string;
  /** Standard error alone. */
  readonly stderr: string;
  /** Milliseconds from the block's start to its end. */
  readonly durationMs: number;
  /** The block was ended because its time was up; the output up to then is kept. */
  readonly timedOut: boolean;
  /** The output was longer than `maxOutputBytes`; head and tail are kept, the cut is named with its size. */
  readonly truncated: boolean;
}

/** How a run of blocks ended. */
export interface CodeResult {
  /** 0: all blocks ran and succeeded; else the exit code of the block that failed; 124: it timed out. */
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
  /** A block was ended because its time was up. */
  readonly timedOut: boolean;
  /** Some block's output was longer than `maxOutputBytes`. */
  readonly truncated: boolean;
  /** The session had to be restarted: variables of earlier blocks are gone. */
  readonly stateLost: boolean;
  /** Milliseconds from the first block's start to the last one's end. */
  readonly durationMs: number;
  /** One result for each block that ran, in order. */
  readonly blocks: readonly BlockResult[];
}
