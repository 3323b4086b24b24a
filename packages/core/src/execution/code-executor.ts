import type { CheckpointOptions, CheckpointReceipt, RestoreReceipt } from "../checkpoints/checkpoint-store.ts";
import type { ComponentModel } from "../components/component-model.ts";
import type { HostFunction } from "../functions/host/host-function.ts";
import type { SubmitOptions, SubmittedRun } from "../runs/submitted-run.ts";
import type { CodeBlock } from "./code-block.ts";
import type { CodeResult } from "./code-result.ts";
import type { ExecuteOptions } from "./execute-options.ts";
import type { ExecutionEvent } from "./execution-event.ts";
import type { ExecutorCapabilities } from "./executor-capabilities.ts";
import type { ExecutorProcesses } from "./executor-processes.ts";
import type { ExecutorUsage } from "./executor-usage.ts";
import type { SessionHandle } from "./session-handle.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

/** Options of `start()`. */
export interface StartOptions {
  /** Stops waiting, and cancels the start if no other call is waiting for it. */
  readonly signal?: AbortSignal | undefined;
}

/** Which functions a model is told about. */
export interface FunctionPromptOptions {
  /** Functions that `ExecuteOptions.functions` will add to the executor's own. Default: none. */
  readonly functions?: readonly HostFunction[] | undefined;
}

/**
 * Runs code somewhere: on this machine, in a container, on a server. A program that fails or times out is a result; a
 * broken backend or a caller's mistake throws a `FencedError`.
 *
 * Calls may overlap: a stateful executor runs them one after another, in order; an executor that starts a process for
 * each block runs them side by side.
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor();
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.exitCode, result.output); // 0 "42\n"
 */
export interface CodeExecutor extends AsyncDisposable {
  /**
   * What this executor can do; accurate after `start()`. See `knownCapabilities` for executors that do not know yet.
   *
   * @throws InvalidInputError before the start of an executor that cannot know: one of `ExecutorSessions`.
   */
  readonly capabilities: ExecutorCapabilities;

  /** The files in the blocks' working directory. */
  readonly files: WorkspaceFiles;

  /** Starts programs that run alongside blocks, such as servers. Absent unless `capabilities.processes` is true. */
  readonly processes?: ExecutorProcesses | undefined;

  /**
   * Absolute path of the blocks' working directory, as programs see it; `undefined` before `start()`, and for executors
   * that do not know it.
   */
  readonly workspacePath?: string | undefined;

  /**
   * Opens the session. Idempotent; concurrent calls share one start. Optional: before the first `stop()`, any call that
   * needs the session opens it. Call `start()` to choose when to wait, or to start again after `stop()`.
   *
   * @throws BackendUnavailableError if the backend cannot be reached; you can call `start` again.
   * @throws ExecutorStoppedError if the executor is stopped meanwhile, or was disposed of.
   * @throws `options.signal.reason` if the signal was aborted; first undoes the start, unless another call waits for
   * it.
   */
  start(options?: StartOptions): Promise<void>;

  /**
   * Ends everything that the executor started and deletes everything that it created, including a temporary workspace.
   * Idempotent. Calls in progress and all later ones reject with `ExecutorStoppedError` until you call `start()`.
   */
  stop(): Promise<void>;

  /**
   * Starts a fresh session, without variables or processes; the workspace's files stay. Calls in progress reject with
   * `ExecutorStoppedError`.
   *
   * @throws ExecutorStoppedError after `stop()`.
   */
  restart(): Promise<void>;

  /** Stops the executor for good: `start()` rejects from then on. `await using` calls it. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * Runs the blocks in order and stops at the first one that fails.
   *
   * @throws InvalidInputError if there are no blocks, or an option is unknown or wrong.
   * @throws ExecutorStoppedError if the executor was stopped, or is stopped or restarted during the call.
   * @throws FunctionSetupError if a user function does not load in the session.
   * @throws BackendUnavailableError if the backend breaks down.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult>;

  /**
   * Does the same as `executeCodeBlocks` and yields everything as it happens; nothing runs until you request the first
   * event. A slow consumer makes the program wait. Leaving the loop early kills what is running, like an abort. You can
   * iterate a stream only once.
   */
  streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent>;

  /**
   * Begins a run that keeps running when no one is waiting: a closed browser, an aborted request or a retry loses nothing.
   * Submitting the same blocks under the same id again, with the same input and variables, returns the same run, which is
   * never executed twice, unless it failed before its first block began. The program does not wait for readers. The
   * executor keeps the first and last events of each run, up to 1 MiB, and the 100 runs that ended last, up to 256 MiB;
   * it remembers the ids of 10,000 older ones. A `stop()` ends runs, but what is kept stays. Where
   * `capabilities.keepsRuns` is true, a run goes on without this program, and belongs to the session: every program that
   * connects to that finds it.
   *
   * @returns the run, which need not have begun.
   * @throws InvalidInputError if there are no blocks, an option is unknown or wrong, or the id was used for
   * something else or for a run that is no longer kept.
   * @throws ExecutorStoppedError if the executor was stopped.
   *
   * @example
   * const run = await executor.submit(blocks, { id: "order-42" });
   * for await (const { seq, event } of run.events({ after: lastSeen })) show(seq, event);
   * const result = await run.result();
   */
  submit(blocks: readonly CodeBlock[], options?: SubmitOptions): Promise<SubmittedRun>;

  /**
   * Returns a submitted run.
   *
   * @throws RunNotFoundError if there is none with this id, or it is no longer kept.
   */
  run(id: string): SubmittedRun;

  /** Returns the submitted runs that are kept, in order of their submission. */
  runs(): SubmittedRun[];

  /**
   * Keeps the workspace's files, and a stateful session's Python variables if you ask for them, in a store of
   * `@fenced/checkpoints`; any executor with the option `restore` starts with them. A second checkpoint stores only what
   * has changed. A stateful executor takes it between two calls; others while blocks run. Programs go on in both cases,
   * and a file that changes while it is read is listed. Optional: an executor that is not one of Fenced's may lack it.
   *
   * @throws InvalidInputError if an option is unknown or wrong, or there are too many files.
   * @throws ExecutorStoppedError if the executor was stopped, or is stopped meanwhile.
   * @throws `options.signal.reason` if the signal was aborted; the store then has no new checkpoint.
   */
  checkpoint?(options: CheckpointOptions): Promise<CheckpointReceipt>;

  /**
   * Measures what the place uses where code runs: processor, memory, disk and processes. Counting the workspace's files takes
   * longer the more there are. Starts an executor that was never started. Optional: an executor that is not one of
   * Fenced's may lack it.
   *
   * @throws ExecutorStoppedError if the executor was stopped, or is stopped meanwhile.
   * @throws BackendUnavailableError if the place does not answer.
   */
  usage?(): Promise<ExecutorUsage>;

  /** What came back from the checkpoint of the option `restore`; `undefined` before `start()` and without that option. */
  readonly restored?: RestoreReceipt | undefined;

  /**
   * Where the session is, for `connectExecutor` in another program, if `capabilities.keepAlive` is true: plain JSON with
   * a secret. Each `start()` makes another one, as does the next call after a session was lost; `restart()` may.
   * `undefined` before `start()`.
   *
   * @throws ComponentError if a setting cannot be dumped.
   */
  readonly handle?: SessionHandle | undefined;

  /**
   * Lets go of the session without ending it: this executor is stopped as by `stop()`, and the session waits for
   * another program for as long as `keepAliveMs` says. Calls in progress reject, and what they were running is ended
   * when another program connects. Present if the executor can have sessions that outlive their programs.
   *
   * @throws InvalidInputError if `capabilities.keepAlive` is not true.
   */
  detach?(): Promise<void>;

  /**
   * Calls `listener` with a reason as soon as the session's state from earlier calls is lost, also while nothing runs:
   * the container was removed, the kernel died. The next result then has `stateLost: true`. Optional: without it, a
   * loss is only noticed by the next call.
   *
   * @returns a function that removes the listener.
   */
  onSessionLost?(listener: (reason: string) => void): () => void;

  /**
   * Returns a prompt that tells a model which user functions it can import: their signatures and docstrings, without
   * bodies.
   *
   * @param template - text in which `$module_name` and `$functions` are replaced. Default: a short English text.
   * @returns an empty string if there are no functions.
   * @throws InvalidInputError if an option is unknown or wrong, or functions cannot share a module.
   */
  formatFunctionsForPrompt(template?: string, options?: FunctionPromptOptions): string;

  /**
   * Returns the executor's settings as plain JSON, for `loadComponent`. They never include secrets.
   *
   * @throws ComponentError if a setting cannot be dumped.
   */
  dumpComponent(): ComponentModel;
}
