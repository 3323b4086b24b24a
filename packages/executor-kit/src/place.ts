import type { Duplex } from "node:stream";
import {
  BackendUnavailableError,
  type ExecutorCapabilities,
  type ExecutorUsage,
  type FileEvent,
  type JsonObject,
  type LeftRun,
  type RunEvent,
  type RunIdentity,
} from "@fenced/core";
import type { FunctionPlaces } from "./functions/function-setup.ts";
import type { WaitingCall } from "./host-calls/waiting-call.ts";
import type { BlockOutcome, BlockRun, LeftProgram, ProgramRun } from "./run/block-run.ts";
import type { RunNote, RunRecord } from "./run/kept-run.ts";
import type { Sink } from "./run/sink.ts";
import type { WatchRequest } from "./supervisor/files/watch-directory.ts";
import type { BackendFiles } from "./workspace/backend-files.ts";

/** What is true of a place: plain data, made once when it opens. */
export interface PlaceFacts {
  /** What is actually available, where it differs from what the executor offered before the start. */
  readonly capabilities?: Partial<ExecutorCapabilities>;
  /** Languages that cannot run here, each with a sentence that says what is missing and what to do. */
  readonly missing?: ReadonlyMap<string, string>;
  /** Absolute path of the work directory, as programs see it, if it is known. Required with `runProgram`. */
  readonly workspacePath?: string | undefined;
  /** Maps ports of programs in the place to ports of 127.0.0.1 on this host. Default: none. */
  readonly ports?: ReadonlyMap<number, number>;
  /**
   * The files do not go with the place, for example because they are on this host, so they can be used while it is lost.
   * Default: false; another place is opened first.
   */
  readonly filesStay?: boolean;
  /**
   * What another program needs to connect to this place, with the key, if it outlives its program. Default: it ends with
   * its program.
   */
  readonly session?: JsonObject;
  /** An earlier program has left it. Default: false. */
  readonly isLeft?: boolean;
  /** Why the variables of a place are gone that an earlier program has left, if they are. Default: nothing is gone. */
  readonly lostState?: string;
}

/** A run to hand on to a place. */
export interface RunSubmission {
  readonly identity: RunIdentity;
  /** Its blocks; or the sentence that says why one cannot run. */
  readonly blocks: readonly (BlockRun | { readonly problem: string })[];
  /** What is needed to read the run's events, besides what the place itself adds. */
  readonly record: RunRecord;
  /** It begins when `go` says so, or this program is gone; runs that wait have their turns one after another. */
  readonly waits: boolean;
  /** Limit on the disk space of the work directory in bytes. Default: none. */
  readonly maxWorkspaceBytes?: number | undefined;
  /** What blocks prove with that they may call host functions, in their variables. Default: they may not. */
  readonly tokens?: readonly string[];
  /** Time limits of the run and of each block in milliseconds. */
  readonly totalTimeoutMs: number;
  readonly timeoutMs: number;
  /** Aborted when the session is restarted or left: a run that the place does not have by then must not begin there. */
  readonly signal: AbortSignal;
}

/** A run that a place keeps. */
export interface ListedRun extends Omit<LeftRun, "read"> {
  /** Identifies it in its place. */
  readonly number: number;
}

/** The runs that a place keeps. */
export interface RunList {
  /** In order of their submission. */
  readonly runs: readonly ListedRun[];
  /** The contents of runs that are no longer kept, by id. */
  readonly forgotten: ReadonlyMap<string, string>;
}

/** Learns of the blocks of a run as they are read. */
export interface RunWatcher {
  /**
   * A block has begun, with this event; it may have ended since.
   *
   * @returns what to call when its end is read, or nothing more is.
   */
  begun(block: number, record: RunRecord, seq: number): () => void;
}

/** The submitted runs with which a place goes on without this program. */
export interface PlaceRuns {
  /** Lists what earlier programs have submitted. */
  list(): Promise<RunList>;

  /**
   * Hands a run on; from then on, it goes on without this program, in the order and within the limits of any run.
   *
   * @returns its number.
   * @throws BackendUnavailableError if the place has no room for it, or is gone.
   */
  submit(run: RunSubmission): Promise<number>;

  /**
   * Yields a run's events as far as they are kept, then live. At most one reader at a time.
   *
   * @param watcher - what this program does for the run while it reads.
   */
  read(number: number, watcher?: RunWatcher): AsyncGenerator<RunEvent, void, void>;

  /**
   * Answers the calls of host functions that a block makes from now on, and those that wait.
   *
   * @returns a function to call when the block has ended.
   */
  serve(number: number, block: number, take: (call: WaitingCall) => void): () => void;

  /** Lets a run begin that waits for its turn. */
  go(number: number): void;

  /** Ends a run, whose events say when it is over. */
  cancel(number: number): void;

  /** Adds something to a run's events, for all who read them; resolves once it is there. */
  note(number: number, note: RunNote): Promise<void>;
}

/**
 * Where an executor's code runs: a container, a pod, a sandbox, another host, a kernel, directories of this host. A
 * backend opens it; `CurrentPlace` keeps it until it is lost or no longer needed. No block runs during `reset` and
 * `end`.
 */
export interface Place {
  readonly facts: PlaceFacts;

  /** The files that blocks see. */
  readonly files: BackendFiles;

  /**
   * Watches a directory of the workspace: yields `undefined` once it does, and then what happens, until the signal is
   * aborted. Default: directories cannot be watched.
   */
  readonly watch?: ((request: WatchRequest) => AsyncGenerator<FileEvent | undefined, void, void>) | undefined;

  /**
   * Measures the disk space of the workspace where the programs run, so that deleted files that they hold open count,
   * too; stops counting beyond `atMost`. Default: that of `files`.
   */
  diskUsage?(atMost: number): Promise<number>;

  /**
   * Measures what the place uses, but for the disk space of the workspace; leaves out what cannot be known. Default: nothing
   * is known.
   */
  usage?(): Promise<Omit<ExecutorUsage, "diskBytes">>;

  /**
   * Resolves once nothing can run here any longer, or the variables of earlier blocks are gone, although nobody asked
   * for that: to an error that says why. An `ExecutorStoppedError` means that another program has taken it over; it is
   * then not replaced. Never rejects. Default: a place that cannot be lost.
   */
  readonly lost?: Promise<Error>;

  /**
   * Returns where function modules are stored; without this method, the place offers no functions. Called before
   * functions are set up.
   *
   * @throws FunctionSetupError if it is already known that they cannot be set up.
   */
  functionPlaces?(): Omit<FunctionPlaces, "owner"> | Promise<Omit<FunctionPlaces, "owner">>;

  /**
   * Opens a channel over which programs call host functions, and passes each connection to `accept`; destroying a
   * connection also ends it on the program's side. Called before functions are set up, and again after `reset`. Without
   * this method, the executor cannot run host functions.
   *
   * @returns its address as programs see it: `unix:/path/of/a/socket`, or `tcp:127.0.0.1:port`.
   * @throws FunctionSetupError if no such channel is possible.
   */
  openHostCalls?(accept: (connection: Duplex) => void): Promise<string>;

  /**
   * Runs one block: writes its output to the sink, and returns how it ended. While the sink has no room, make the
   * program wait.
   *
   * `sink.signal` may abort at any time, even while a write waits: kill everything that the block started, and return
   * once it is dead. Anything written, returned or thrown afterwards is dropped.
   *
   * @throws WorkspacePathError, FileNotFoundError or InvalidInputError if the file `block.filename` cannot be created;
   * the block then fails with a sentence about it.
   * @throws PlaceGone if the place was gone before the block began; the block then runs in the next place.
   * @throws BackendUnavailableError if the backend broke down; the call then rejects.
   */
  run(block: BlockRun, sink: Sink): Promise<BlockOutcome>;

  /** Submitted runs that go on without this program. Default: they end with their program. */
  readonly runs?: PlaceRuns | undefined;

  /**
   * Runs a program in the work directory, alongside blocks and other programs, by the same rules as `run`; but a program is
   * started only once, so after `PlaceGone` it ends with an error. Children that it leaves running stay alive until
   * `reset`. Required if the executor's `capabilities.processes` is true.
   */
  runProgram?(program: ProgramRun, sink: Sink): Promise<BlockOutcome>;

  /**
   * Returns the programs that earlier programs using this place have started by `runProgram`, each once. Default: there
   * are none.
   */
  leftPrograms?(): Promise<readonly LeftProgram[]>;

  /**
   * Connects to a port on which a program in the place listens, by the place's own loopback. If none listens, the
   * connection ends. The number of connections is limited, and so is what they keep in memory. Required if its
   * `capabilities.addresses` is true.
   *
   * @throws Error if there are too many connections, or the place is gone.
   */
  connectPort?(port: number): Duplex;

  /**
   * Discards variables and ends all processes; files stay. Default: the place is ended, and another one opened.
   *
   * @throws PlaceGone if it cannot do that, but a new place could take its place. After any other error, the executor
   * is stopped.
   */
  reset?(signal: AbortSignal): Promise<void>;

  /**
   * Copies the interpreter of Python blocks, with its variables. What runs in the copy changes nothing in the original, and
   * the end of the copy loses nothing. Default: there is no copy.
   *
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted.
   */
  copy?(signal: AbortSignal): Promise<Place>;

  /**
   * Called when the executor is stopped, before `end`, while blocks may still be ending. If code can keep a block's
   * end from being reported, limit here how long `run` waits for that report. Default: no limit other than that of
   * `run`.
   *
   * @param isDetached - as for `end`: fail the programs without ending them.
   */
  stopping?(isDetached: boolean): void;

  /** Ends everything in it. Does nothing if it is gone, or has been ended before. */
  end(end: PlaceEnd): Promise<void>;
}

/** How a place is ended. */
export interface PlaceEnd {
  /** Another place follows. If this one ends by itself, do not reject if it cannot be ended now. */
  readonly isReplaced: boolean;
  /** Let go of the place, which waits for another program; only if `facts.session` is set. Default: false. */
  readonly isDetached?: boolean;
}

/** How a place is opened. */
export interface Opening {
  /** Aborted if nobody needs the place any longer; throw then. */
  readonly signal: AbortSignal;
  /** It replaces a place that was ended to discard variables and processes, not one that was lost. */
  readonly isRestart: boolean;
}

/**
 * Opens an executor's places, one after another: each is ended before the next is opened. Everything that outlives them
 * belongs to it: directories, what cleans up after this program, a connection to a daemon.
 */
export interface Backend<P extends Place = Place> {
  /** @throws BackendUnavailableError if the place does not open. First undo everything that was done for it. */
  open(opening: Opening): Promise<P>;

  /**
   * Deletes everything that was created. Called once, after the last place has ended.
   *
   * @param end - how that was ended. Default: for good.
   */
  close(end?: PlaceEnd): Promise<void>;
}

/** A place is gone, and what was asked of it did not begin: another place can do it instead. */
export class PlaceGone extends Error {}

/** The error for a caller whose request cannot be repeated in another place. */
export function placeLost(cause: PlaceGone): BackendUnavailableError {
  return new BackendUnavailableError(`The session was lost: ${cause.message}`, {
    remedy: "Call again to use a new one, without the variables of this one.",
    cause,
  });
}
