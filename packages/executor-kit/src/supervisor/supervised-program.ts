/** A program to run where the supervisor is. */
export interface SupervisedProgram {
  /** The program and its arguments; it is looked for on the `PATH` of `env`, else of where the supervisor runs. */
  readonly argv: readonly string[];
  /** Variables over those of where the supervisor runs. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * What it reads. Of an `AsyncIterable`, pieces are requested while the program runs, as it takes them; one that throws
   * ends there, and `return()` is called once the program has ended or closed its input. Default: standard input is empty.
   */
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** A file for it in the workspace, written before it starts. Default: there is none. */
  readonly file?: ProgramFile;
  /** Kills everything that the program started. */
  readonly signal: AbortSignal;
}

/** A file of the host's own, for one program. */
export interface ProgramFile {
  /** In the workspace, and new there: something else of that name makes the program fail. */
  readonly name: string;
  readonly content: string;
  /** Leave it there. Default: false; it is removed when the program has ended. */
  readonly keep?: boolean;
}

/**
 * Which programs do not have to start an interpreter of their own: those that run one file with one of these, and these
 * variables.
 */
export interface WarmPrograms {
  /** The interpreter of Python, as the first word of their `argv`; the second and last one is the file. Default: none. */
  readonly python?: string;
  /** Modules that it has imported already; those that cannot be imported are left to the programs. Default: none. */
  readonly preload?: readonly string[];
  /** The command for JavaScript: all words of their `argv` before the file. Default: none. */
  readonly node?: readonly string[];
  /** Their `env`. Variables whose name starts with `FENCED_` may differ from program to program. */
  readonly env: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface ProgramEnd {
  /** 128 + n if signal n ended it. */
  readonly exitCode: number;
  /** The kernel ended processes for want of memory while the program ran. */
  readonly outOfMemory: boolean;
  /** The interpreter that it ran in is gone, with the variables of earlier blocks. Default: it had none. */
  readonly stateLost?: boolean;
  /** Displays were left out. Default: false. */
  readonly truncated?: boolean;
}
