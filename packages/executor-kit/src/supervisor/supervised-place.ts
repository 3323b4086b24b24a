import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { BlockRun } from "../run/block-run.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import type { ProgramFile } from "./supervised-program.ts";
import type { Supervisor } from "./supervisor.ts";

/** Runs the programs of a place: its supervisor, or something that does part of what a supervisor does. */
export type PlaceRunner = Pick<Supervisor, "run" | "reset" | "fail"> &
  Partial<Pick<Supervisor, "openCalls" | "keepWarm" | "openInterpreter" | "forkInterpreter" | "ping">>;

/** A block's file. */
export interface BlockFile {
  /** Absolute path, as programs see it. */
  readonly path: string;
  /** Absolute path on this host. Default: it is not here. */
  readonly onHost?: string;
  /** What to send to the supervisor with the program, if the file is not there yet. */
  readonly sent?: ProgramFile;
  /** Remove it when the program has ended. Default: false. */
  readonly temporary?: boolean;
}

/** Where the programs of a session run: one container, one pod, one sandbox. */
export interface SupervisedPlace {
  /** Why no program can run in it any more; `undefined` as long as programs can. */
  readonly lost: Error | undefined;
  readonly runner: PlaceRunner;
  readonly languages: PlaceLanguages;
  /** The files that programs see. */
  readonly files: BackendFiles;

  /** All variables of a program that the caller gave these. Default: only these. */
  variables?(given: Readonly<Record<string, string>>): Readonly<Record<string, string>>;

  /** @throws WorkspacePathError, FileNotFoundError or InvalidInputError if the file that the block names cannot be created. */
  writeBlock(block: BlockRun, extension: string): BlockFile | Promise<BlockFile>;

  /**
   * Called when a program has ended, or the place was lost meanwhile: removes its file, if that is temporary. Returns a sentence about
   * what went wrong. Never rejects, since that would lose the program's result.
   */
  settle(file: BlockFile | undefined): Promise<string | undefined>;

  /** Calls `action` once, as soon as no program can run in it any more. */
  whenLost(action: (reason: string) => void): void;

  /** Ends everything in it. Does no harm if it has ended. */
  end(): Promise<void>;
}
