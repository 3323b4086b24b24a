import type { ExecutorCapabilities } from "@fenced/core";
import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { Opening, PlaceEnd, PlaceFacts } from "../place.ts";
import type { BlockRun } from "../run/block-run.ts";
import type { BackendFiles } from "../workspace/backend-files.ts";
import type { ProgramFile, SupervisedProgram } from "./blocks/supervised-program.ts";
import type { Supervisor } from "./supervisor.ts";

/** Runs the programs of a place: its supervisor, or something that does part of a supervisor's work. */
export type ProgramRunner = Pick<Supervisor, "run" | "reset" | "fail"> &
  Partial<
    Pick<
      Supervisor,
      | "openCalls"
      | "keepWarm"
      | "openInterpreter"
      | "takeInterpreter"
      | "forkInterpreter"
      | "openNetwork"
      | "ping"
      | "measure"
      | "usage"
      | "runs"
      | "framesOf"
      | "leftPrograms"
      | "connect"
      | "watcher"
      | "isCut"
    >
  >;

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

/** A block's file that is to be written when the block's turn comes. */
export interface PlannedFile {
  readonly file: BlockFile;
  /** The program that writes it. Default: it is sent with the block's program. */
  readonly write?: SupervisedProgram;
}

/**
 * The work directory of a place. `HostWorkspace` is one that this host shares, `SentWorkspace` one that it reaches only
 * through the supervisor.
 */
export interface PlaceWorkspace {
  /** Absolute path, as programs see it. */
  readonly path: string;
  readonly files: BackendFiles;
  /** See `PlaceFacts`. */
  readonly filesStay: boolean;

  /** @throws WorkspacePathError, FileNotFoundError or InvalidInputError if the file that the block names cannot be created. */
  writeBlock(block: BlockRun, extension: string): BlockFile | Promise<BlockFile>;

  /** The same for a block of a run that goes on without this program. Default: there are no such runs. */
  planBlock?(block: BlockRun, extension: string): PlannedFile;

  /**
   * Called when a program has ended: removes its file if it is temporary. Returns a sentence about what went wrong, if
   * anything. Never rejects, since that would lose the program's result.
   */
  settle(file: BlockFile | undefined): Promise<string | undefined> | undefined;

  /** Called before functions are stored there; do not list their files. */
  hideFunctionsPackage?(): void;
}

/** A place with a supervisor, as a backend connects to it. */
export interface Connection extends Pick<PlaceFacts, "ports" | "session"> {
  readonly runner: ProgramRunner;
  readonly languages: PlaceLanguages;
  readonly workspace: PlaceWorkspace;
  /** The session's own directory, as programs see it. */
  readonly directory: string;
  /** Resolves once nothing can run there any longer, unless `end` was called: to an error that says why. */
  readonly lost: Promise<Error>;
  /**
   * Returns true once something shows that it is lost, even while the reason is still being found out, which `lost` then
   * tells. Default: only `lost` shows it.
   */
  readonly isLosing?: () => boolean;
  /** It may live on after `end`, so its supervisor must end what blocks have started. Default: false. */
  readonly outlivesSession?: boolean;
  /** An earlier program has left it. Default: false; it is new. */
  readonly isLeft?: boolean;
  /** Programs there do not need the session's proxy. Default: false. */
  readonly hasNetwork?: boolean;
  /** What is available, where the kit cannot know it. Default: what the languages and the runner make possible. */
  readonly capabilities?: Partial<ExecutorCapabilities>;

  /** Completes a program's variables, given those of the caller and those that tell programs where the proxy is. */
  variables?(given: Readonly<Record<string, string>>): Readonly<Record<string, string>>;

  /** As for a `Place`. */
  end(end: PlaceEnd): Promise<void>;
}

/** What a backend with a supervisor writes: how to connect to a place, and what outlives one. */
export interface Connector {
  /**
   * Creates a place, starts its supervisor, and connects to it.
   *
   * @throws BackendUnavailableError if that fails. First undo everything that was done.
   */
  connect(opening: Opening): Promise<Connection>;

  /** As for a `Backend`. */
  close(end?: PlaceEnd): Promise<void>;
}
