import type { Duplex } from "node:stream";
import type { ExecutorCapabilities } from "@fenced/core";
import type { FunctionPlaces } from "./functions/function-setup.ts";
import type { BlockEvent, BlockOutcome, BlockRun } from "./run/block-run.ts";
import type { BackendFiles } from "./workspace/backend-files.ts";

/**
 * A place where blocks run, while it is open: a container, a connection, a kernel, directories of this host. An executor's
 * `openSession` makes it; the base class keeps it, asks it for everything, and closes it. `reset`, `repair` and `close` never
 * run at the same time as each other, and no block runs during `reset` and `close`.
 */
export interface BackendSession {
  /** What was found to be there, where it differs from what the executor offered before it was started. */
  readonly capabilities?: Partial<ExecutorCapabilities>;

  /** Languages that cannot run here, each with a sentence that says what is missing and what to do. */
  readonly missing?: ReadonlyMap<string, string>;

  /** The files that blocks see. */
  readonly files: BackendFiles;

  /**
   * Where function modules are kept; without it the session offers no functions. Called before they are set up.
   *
   * @throws FunctionSetupError if it is already known that they cannot be set up.
   */
  functionPlaces?(): Omit<FunctionPlaces, "owner"> | Promise<Omit<FunctionPlaces, "owner">>;

  /**
   * Makes a way for programs to call functions of the host, from which each connection goes to `accept`; a connection that is
   * destroyed ends at the program, too. Called before functions are set up: once more after `reset`, and where `repair` has
   * replaced the place. Without it the session offers no functions of the host.
   *
   * @returns its address as programs see it: `unix:/path/of/a/socket`, or `tcp:127.0.0.1:port`.
   * @throws FunctionSetupError if there is no way from this place.
   */
  openHostCalls?(accept: (connection: Duplex) => void): Promise<string>;

  /**
   * Runs one block: yields its output and returns how it ended. When the consumer is slow, the next event is not asked for,
   * and the program must be made to wait.
   *
   * `block.signal` may abort at any time, also while an event is being consumed: kill everything that the block started,
   * and return once it is dead; what is returned, yielded or thrown after that is dropped.
   *
   * @throws WorkspacePathError, FileNotFoundError or InvalidInputError if a file named `block.filename` cannot be made; the
   * block fails with a sentence about it.
   * @throws BackendUnavailableError if the place broke down; the call rejects.
   */
  run(block: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void>;

  /** Forgets variables and ends all processes; files stay. If it throws, the session is closed. */
  reset(signal: AbortSignal): Promise<void>;

  /**
   * Called before each call's blocks, also side by side. A session whose place may break down replaces it here, and calls the
   * executor's `forgetFunctions` if what was set up in there is gone.
   *
   * @throws BackendUnavailableError if it cannot be replaced; the call rejects.
   */
  repair?(signal: AbortSignal): Promise<void>;

  /** Ends all processes and deletes everything that was made. Called once. */
  close(): Promise<void>;
}
