import type { Display, NetworkDecision } from "@fenced/core";

/** With this reason a block's signal is aborted when its time is up; in all other cases nobody hears how it ended. */
export const timeIsUp: Error = new Error("The block's time is up");

/** One block, ready to run, as an executor gets it from the base class. */
export interface BlockRun {
  /** Canonical name of the language: one of `capabilities.languages`. */
  readonly language: string;
  /** The source text, unchanged. */
  readonly code: string;
  /**
   * Where the block asked to be kept (`# filename: path`): relative to the workspace, normalised, with `/`. That no
   * symbolic link leads it out of the workspace is for the executor to see; `WorkspacePathError` fails the block.
   */
  readonly filename?: string;
  /** The executor's `env` with the call's `env` over it. */
  readonly env: Readonly<Record<string, string>>;
  /** Time limit of the block in milliseconds; `signal` enforces it. For backends that need to know. `Infinity`: no limit. */
  readonly timeoutMs: number;
  /** It sets functions up: a program of the executor's own, not a block of the caller's. */
  readonly setup?: true;
  /**
   * Its programs can call functions of the host, by what `env` has for them. `variant`: the directory, in that of Python modules,
   * with the module for this block.
   */
  readonly hostCalls?: { readonly variant?: string };
  /** What the block reads; `undefined`: standard input is closed. */
  readonly stdin?: string;
  /**
   * Aborted when the block must end: time is up, the caller aborted or left, or the executor stops. Everything that
   * the block started must then be killed, and `run` must finish once it is dead. The reason is `timeIsUp` if the
   * outcome will still be reported.
   */
  readonly signal: AbortSignal;
}

/**
 * What a block puts out. Bytes may be cut anywhere, also within a character; the base class joins them. It copies
 * what it keeps before it asks for the next event, so the memory may be used again then.
 */
export type BlockEvent =
  | { readonly type: "stdout" | "stderr"; readonly data: Uint8Array | string }
  /** `replaces`: an earlier output of this block, whose place this one takes in the result. */
  | { readonly type: "display"; readonly display: Display; readonly replaces?: Display }
  /** The block took back what it had put out: the result forgets it. Streams have carried it already. */
  | { readonly type: "clear" };

/** How a block ended, as the executor saw it. Time-outs are the base class's to tell. */
export interface BlockOutcome {
  /** 0: succeeded; 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** The file that holds the block, an absolute path on the host. */
  readonly codeFile?: string;
  /**
   * When the program ended, on the clock of `performance.now()`. To be given where the last of its output may be handed
   * on much later, to a slow consumer: that wait does not count as the block's. Default: when `run` returns.
   */
  readonly endedAt?: number;
  /** Requests that the network policy refused meanwhile; `NetworkLog` collects them. */
  readonly network?: readonly NetworkDecision[];
  /** Variables of earlier blocks are gone. */
  readonly stateLost?: boolean;
  /** The place where the code ran dropped output by itself, before it reached the executor. */
  readonly truncated?: boolean;
}
