import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { BlockRun } from "../run/block-run.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import type { ProgramFile } from "./blocks/supervised-program.ts";
import type { Supervisor } from "./supervisor.ts";

/** Runs the programs of a place: its supervisor, or something that does part of a supervisor's work. */
export type PlaceRunner = Pick<Supervisor, "run" | "reset" | "fail"> &
  Partial<Pick<Supervisor, "openCalls" | "keepWarm" | "openInterpreter" | "forkInterpreter" | "ping" | "measure">>;

/** A block's file. */
export interface BlockFile {
  /** Absolute path, as programs see it. */
  readonly path: string;
  /** Absolute path on this host. Default: the file is not on this host. */
  readonly onHost?: string;
  /** The file to send to the supervisor with the program if it is not there yet. */
  readonly sent?: ProgramFile;
  /** Remove it when the program has ended. Default: false. */
  readonly temporary?: boolean;
}

/** Where the programs of a session run: one container, one pod, one sandbox. */
export interface SupervisedPlace {
  /** Why programs can no longer run in it; `undefined` while they can. */
  readonly lost: Error | undefined;
  readonly runner: PlaceRunner;
  readonly languages: PlaceLanguages;
  /** The files that programs see. */
  readonly files: BackendFiles;

  /** Completes a program's variables, given those of the caller. Default: returns them unchanged. */
  variables?(given: Readonly<Record<string, string>>): Readonly<Record<string, string>>;

  /** @throws WorkspacePathError, FileNotFoundError or InvalidInputError if the file that the block names cannot be created. */
  writeBlock(block: BlockRun, extension: string): BlockFile | Promise<BlockFile>;

  /**
   * Called when a program has ended or the place was lost: removes the program's file if it is temporary. Returns a
   * sentence about what went wrong, if anything. Never rejects, since that would lose the program's result.
   */
  settle(file: BlockFile | undefined): Promise<string | undefined>;

  /** Calls `action` once, as soon as programs can no longer run in it. */
  whenLost(action: (reason: string) => void): void;

  /** Ends everything in it. Does nothing if it has already ended. */
  end(): Promise<void>;
}
