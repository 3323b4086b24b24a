import type { ComponentModel } from "../components/component-model.ts";
import type { CodeBlock } from "./code-block.ts";
import type { CodeResult } from "./code-result.ts";
import type { ExecuteOptions } from "./execute-options.ts";
import type { ExecutionEvent } from "./execution-event.ts";
import type { ExecutorCapabilities } from "./executor-capabilities.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

/** What one `start()` may say. */
export interface StartOptions {
  /** Ends the waiting, and the start itself if nobody else waits for it. */
  readonly signal?: AbortSignal;
}

/**
 * A place where code runs. A program that fails or times out is a result; a broken backend or a caller's mistake
 * throws a `FencedError`.
 *
 * Calls may overlap: a stateful executor runs them one after another, first come first served; one that starts a
 * process for each block runs them side by side.
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor();
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.exitCode, result.output); // 0 "42\n"
 */
export interface CodeExecutor extends AsyncDisposable {
  /** What this executor can do; exact after `start()`. */
  readonly capabilities: ExecutorCapabilities;

  /** The files that the blocks see. */
  readonly files: WorkspaceFiles;

  /**
   * Opens the session. Idempotent, and concurrent calls share one start. Before the first `stop()`, whatever needs the session
   * opens it by itself, so calling it is a matter of when the waiting should happen; after `stop()`, only this does.
   *
   * @throws BackendUnavailableError if the place where code runs cannot be reached; `start` may be tried again.
   * @throws ExecutorStoppedError if it is stopped meanwhile, or was disposed of.
   * @throws `options.signal.reason` if the signal was aborted. A start that nobody else waits for is then undone first.
   */
  start(options?: StartOptions): Promise<void>;

  /**
   * Ends all that the executor started and deletes all that it created, a temporary workspace too. Idempotent. Calls
   * under way, and all later ones, reject with `ExecutorStoppedError` until `start()` is called.
   */
  stop(): Promise<void>;

  /**
   * A fresh session: no variables, no processes; the workspace's files stay. Calls under way reject with
   * `ExecutorStoppedError`.
   *
   * @throws ExecutorStoppedError after `stop()`.
   */
  restart(): Promise<void>;

  /** Stops the executor for good: `start()` rejects from then on, too. `await using` calls it. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * Runs the blocks in order and stops at the first one that fails.
   *
   * @throws InvalidInputError if there are no blocks, or an option is unknown or wrong.
   * @throws ExecutorStoppedError if the executor was stopped, or is stopped or restarted meanwhile.
   * @throws FunctionSetupError if a user function does not load in the session.
   * @throws BackendUnavailableError if the place where code runs broke down.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult>;

  /**
   * The same as `executeCodeBlocks`, with everything that happens as it happens; nothing runs before the first event
   * is asked for. The program waits when the consumer is slow. Leaving the loop early kills what runs, like an abort.
   * A stream can be iterated once.
   */
  streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent>;

  /**
   * Tells a model which user functions it can import: their signatures and docstrings, without their bodies.
   *
   * @param template - text in which `$module_name` and `$functions` are replaced. Default: a short English text.
   * @returns an empty string if there are no functions.
   */
  formatFunctionsForPrompt(template?: string): string;

  /**
   * The executor's settings as plain JSON, for `loadComponent`. Secrets are never part of it.
   *
   * @throws ComponentError if a setting cannot be dumped.
   */
  dumpComponent(): ComponentModel;
}
