import type { Duplex } from "node:stream";
import type { ExecutorCapabilities } from "@fenced/core";
import type { FunctionPlaces } from "./functions/function-setup.ts";
import type { BlockOutcome, BlockRun, ProgramRun } from "./run/block-run.ts";
import type { Sink } from "./run/sink.ts";
import type { BackendFiles } from "./workspace/backend-files.ts";

/** What is true of an open place: plain data, made once when it opens. */
export interface PlaceFacts {
  /** What is actually available, where it differs from what the executor offered before the start. */
  readonly capabilities?: Partial<ExecutorCapabilities>;
  /** Languages that cannot run here, each with a sentence that says what is missing and what to do. */
  readonly missing?: ReadonlyMap<string, string>;
  /** Absolute path of the work directory, as programs see it, if it is known. Required with `runProgram`. */
  readonly workspacePath?: string | undefined;
  /** Maps ports of programs in the session to ports of 127.0.0.1 on this host. Default: none. */
  readonly ports?: ReadonlyMap<number, number>;
}

/**
 * An open place where blocks run: a container, a connection, a kernel, directories of this host. An executor's
 * `openSession` creates it; the base class keeps it, delegates to it, and closes it. `reset`, `repair` and `close`
 * never overlap, and no block runs during `reset` and `close`.
 */
export interface BackendSession {
  /** What is true of the place; another object once it has been replaced by a different one. */
  readonly facts: PlaceFacts;

  /** The files that blocks see. */
  readonly files: BackendFiles;

  /**
   * Measures the disk space of the workspace where the programs run, so that deleted files that they hold open count,
   * too; stops counting beyond `atMost`. Default: that of `files`.
   */
  diskUsage?(atMost: number): Promise<number>;

  /**
   * Returns where function modules are stored; without this method, the session offers no functions. Called before
   * functions are set up.
   *
   * @throws FunctionSetupError if it is already known that they cannot be set up.
   */
  functionPlaces?(): Omit<FunctionPlaces, "owner"> | Promise<Omit<FunctionPlaces, "owner">>;

  /**
   * Opens a channel over which programs call host functions, and passes each connection to `accept`; destroying a
   * connection also ends it on the program's side. Called before functions are set up, and again after `reset` and
   * after `repair` has replaced the backend. Without this method, the executor cannot run host functions.
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
   * @throws BackendUnavailableError if the backend broke down; the call then rejects.
   */
  run(block: BlockRun, sink: Sink): Promise<BlockOutcome>;

  /**
   * Runs a program in the work directory, alongside blocks and other programs, by the same rules as `run`. Children
   * that it leaves running stay alive until `reset`. Required if the executor's `capabilities.processes` is true.
   */
  runProgram?(program: ProgramRun, sink: Sink): Promise<BlockOutcome>;

  /** Discards variables and ends all processes; files stay. If it throws, the session is closed. */
  reset(signal: AbortSignal): Promise<void>;

  /**
   * Called before each call's blocks, possibly concurrently. If the backend can break down, replace it here, and call
   * the executor's `forgetFunctions` if functions that were set up in it are gone.
   *
   * @returns `undefined` if blocks can run now.
   * @throws BackendUnavailableError if it cannot be replaced; the call then rejects.
   */
  repair?(signal: AbortSignal): Promise<void> | undefined;

  /**
   * Called when the executor is stopped, before `close`, while blocks may still be ending. If code can keep a block's
   * end from being reported, limit here how long `run` waits for that report. Default: no limit other than that of
   * `run`.
   */
  stopping?(): void;

  /** Ends all processes and deletes everything that was created. Called once. */
  close(): Promise<void>;
}
