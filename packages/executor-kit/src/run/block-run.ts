import type { Display, NetworkDecision, ProcessSignal, RunUsage, TerminalSize } from "@fenced/core";
import type { Sink } from "./sink.ts";

/**
 * The reason with which a block's signal is aborted when it times out. With any other reason, the block's outcome is
 * not reported.
 */
export const timeIsUp: Error = new Error("The block has timed out");

/** One block, ready to run, as the base class passes it to an executor. */
export interface BlockRun {
  /** Canonical name of the language: one of `capabilities.languages`. */
  readonly language: string;
  /** The source code, unchanged. */
  readonly code: string;
  /**
   * Where to save the block (`# filename: path`): relative to the workspace, normalized, with `/`. The executor must
   * make sure that no symbolic link leads out of the workspace; `WorkspacePathError` fails the block.
   */
  readonly filename?: string;
  /** The executor's `env`, overridden by the call's. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Time limit of the block in milliseconds, for backends that need to know it; the sink's signal enforces it.
   * `Infinity`: no limit.
   */
  readonly timeoutMs: number;
  /** This block sets up functions: it is the executor's own program, not the caller's. */
  readonly setup?: true;
  /**
   * The block's programs can call host functions, through variables in `env`. `variant`: the subdirectory of the Python
   * modules that contains the module for this block.
   */
  readonly hostCalls?: { readonly variant?: string };
  /** The block's standard input; `undefined`: it is closed. */
  readonly stdin?: string;
}

/** What can be done with a program that runs. Does nothing once it has ended. */
export interface ProgramControls {
  /** Its process id where it runs; `undefined` if it is not known. */
  readonly pid?: number | undefined;
  /** Required if the program has a terminal. */
  resize?(size: TerminalSize): void;
  /** Sends a signal to the program and its process group. Default: signals cannot be sent. */
  signal?(name: ProcessSignal): void;
}

/** A program to run alongside blocks, as the base class passes it to a session. */
export interface ProgramRun extends Pick<BlockRun, "env"> {
  readonly argv: readonly [string, ...string[]];
  /**
   * Its standard input; `undefined`: it is closed. An `AsyncIterable` is input that arrives while the program runs:
   * start the program at once, request a piece only when the program or a bounded buffer has accepted the previous one,
   * close the program's input at the end, and call `return()` when the program closes its input. Pieces have at most 64
   * KiB. The iterable ends by itself once `runProgram` has returned.
   */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /**
   * Run it on a new terminal of this size, whose output is standard output, and whose input `stdin` is. Only if the place's
   * `capabilities.terminals` is true.
   */
  readonly pty?: TerminalSize;
  /** What another program that uses the place later is told about this one. */
  readonly label: string;
  /** Call this once it runs. */
  readonly started: (controls: ProgramControls) => void;
}

/** A program that runs alongside blocks, and that an earlier program using this place has started. */
export interface LeftProgram {
  readonly pid: number;
  /** As it was given to `ProgramRun`. */
  readonly label: string;
  readonly takesInput: boolean;
  readonly hasTerminal: boolean;
  /** Its exit code, if it has ended. */
  readonly exitCode?: number;
  readonly controls: ProgramControls;
  /** As `Place.runProgram`, from now on. Call this once. */
  readonly follow: (sink: Sink, stdin?: AsyncIterable<Uint8Array>) => Promise<BlockOutcome>;
}

/**
 * What a block outputs. Chunks of bytes may end anywhere, even within a character; the base class joins them.
 */
export type BlockEvent =
  | { readonly type: "stdout" | "stderr"; readonly data: Uint8Array | string }
  /** `replaces`: an earlier output of this block that this one replaces in the result. */
  | { readonly type: "display"; readonly display: Display; readonly replaces?: Display }
  /** The block cleared its output so far: the result drops it, although streams have already carried it. */
  | { readonly type: "clear" };

/** How a block ended, as the executor saw it. The base class reports timeouts. */
export interface BlockOutcome {
  /** 0: success; 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** The absolute path on the host of the file with the block. */
  readonly codeFile?: string;
  /**
   * When the program ended, as a `performance.now()` time. Set this if `run` returns later, because it cleans up or waits
   * for a slow consumer to take the last output: that does not count towards the block's duration. Default: when `run`
   * returns.
   */
  readonly endedAt?: number;
  /** Requests that the network policy refused during the block; `SessionNetwork` collects them. */
  readonly network?: readonly NetworkDecision[];
  /** Requests that the network policy allowed during the block, each host and port once. Default: they are not known. */
  readonly reached?: readonly NetworkDecision[] | undefined;
  /** What is known of what the block used. */
  readonly usage?: RunUsage | undefined;
  /** True if the variables of earlier blocks are gone. */
  readonly stateLost?: boolean;
  /** True if the backend itself dropped output before it reached the executor. */
  readonly truncated?: boolean;
}
