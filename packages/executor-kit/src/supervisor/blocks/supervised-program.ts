import type { ProgramRun } from "../../run/block-run.ts";
import type { ProgramUsage } from "./program-usage.ts";

/** A program to run where the supervisor is. */
export interface SupervisedProgram {
  /**
   * The program and its arguments. Searched for on the `PATH` in `env`, or else that of the supervisor's environment.
   */
  readonly argv: readonly string[];
  /** Variables that override those of the supervisor's environment. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Its standard input. Pieces of an `AsyncIterable` are requested while the program runs, as it reads them; if the
   * iterable throws, the input ends there, and `return()` is called once the program has ended or closed its input.
   * Default: standard input is empty.
   */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** A file to create before the program starts. Default: none. */
  readonly file?: ProgramFile;
  /** What is special about a program that runs alongside blocks. Default: it is a block. */
  readonly alongside?: AlongsideBlocks;
}

/** See `ProgramRun`. */
type AlongsideBlocks = Pick<ProgramRun, "label" | "pty" | "started">;

/** A file that the host creates for one program. */
export interface ProgramFile {
  /** Its name in the workspace, or its absolute path. If anything has that name already, the program fails. */
  readonly name: string;
  readonly content: string;
  /** Keep the file. Default: false; it is removed when the program has ended. */
  readonly keep?: boolean;
}

/**
 * The programs that can use a waiting interpreter: those that run one file with one of these commands and these
 * variables.
 */
export interface WarmPrograms {
  /** The Python interpreter, as the first word of their `argv`; the second and last word is the file. Default: none. */
  readonly python?: string;
  /** Modules to import in advance; those that fail to import are skipped. Default: none. */
  readonly preload?: readonly string[];
  /** The JavaScript command: all words of their `argv` before the file. Default: none. */
  readonly node?: readonly string[];
  /** Their `env`. Variables whose names start with `FENCED_` may differ from program to program. */
  readonly env: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface ProgramEnd {
  /** 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** True if the kernel killed processes for lack of memory while the program ran. */
  readonly outOfMemory: boolean;
  /** When that was reported, by `performance.now()`. Default: unknown. */
  readonly endedAt?: number;
  /**
   * True if its interpreter is gone, along with the variables of earlier blocks. Default: it had no such interpreter.
   */
  readonly stateLost?: boolean;
  /** True if displays were left out. Default: false. */
  readonly truncated?: boolean;
  /** Default: that is not known. */
  readonly usage?: ProgramUsage;
}
