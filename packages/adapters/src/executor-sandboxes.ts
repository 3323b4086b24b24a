import { randomUUID } from "node:crypto";
import { InvalidInputError, type CodeExecutor } from "@fenced/core";
import { checkOptions, codeExecutorOption } from "@fenced/core/options";
import * as z from "zod";
import { ExecutorSandbox } from "./executor-sandbox.ts";
import { executorSandboxesOptions, type ExecutorSandboxesOptions } from "./executor-sandboxes-options.ts";

const made = z.object({ executor: codeExecutorOption });

/** The sandboxes of an adapter, by their ids. The base for adapters of other frameworks than those that have one here. */
export class ExecutorSandboxes implements AsyncDisposable {
  readonly #options: ExecutorSandboxesOptions;
  readonly #sandboxes = new Map<string, ExecutorSandbox>();
  /** What is done last with each id: never two things at a time. */
  readonly #turns = new Map<string, Promise<unknown>>();

  /**
   * @param what - what the caller has called, for errors.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: ExecutorSandboxesOptions, what = "ExecutorSandboxes") {
    this.#options = checkOptions(executorSandboxesOptions, options, what);
  }

  /** Whether `snapshot` works. */
  get hasSnapshots(): boolean {
    return this.#options.snapshots !== undefined;
  }

  /** Whether sandboxes of earlier programs are found again. */
  get areDurable(): boolean {
    return this.#options.resumeExecutor !== undefined;
  }

  /**
   * Creates and starts a sandbox. One of the same id is ended before.
   *
   * @param snapshot - the id of the snapshot to begin with. Default: an empty sandbox.
   * @throws InvalidInputError if there are no snapshots, or the executor cannot start programs; the executor's errors.
   */
  create(
    id: string = randomUUID(),
    { snapshot, signal }: { readonly snapshot?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutorSandbox> {
    return this.#inTurn(id, async () => {
      const restore = snapshot === undefined ? {} : { restore: { store: this.#store(), id: snapshot } };
      await this.#endNow(id);
      const executor = await this.#options.createExecutor({ id, ...restore, ...(signal ? { signal } : {}) });
      return this.#open(id, checkOptions(made, { executor }, "createExecutor").executor, signal);
    });
  }

  /** Returns a sandbox that is still there; `undefined` if none of this id is. */
  find(id: string, signal?: AbortSignal): Promise<ExecutorSandbox | undefined> {
    return this.#inTurn(id, () => this.#findNow(id, signal));
  }

  async #findNow(id: string, signal?: AbortSignal): Promise<ExecutorSandbox | undefined> {
    const known = this.#sandboxes.get(id);
    if (known) return known;
    const executor = await this.#options.resumeExecutor?.({ id, ...(signal ? { signal } : {}) });
    if (executor === undefined) return undefined;
    return this.#open(id, checkOptions(made, { executor }, "resumeExecutor").executor, signal);
  }

  /** The sandboxes of this program, oldest first. */
  list(): ExecutorSandbox[] {
    return [...this.#sandboxes.values()];
  }

  /**
   * Keeps the files of a sandbox.
   *
   * @returns the snapshot's id, for `create`.
   * @throws InvalidInputError if there are no snapshots, or the executor has no `checkpoint()`.
   */
  async snapshot({ executor }: ExecutorSandbox): Promise<string> {
    const store = this.#store();
    if (!executor.checkpoint) {
      throw new InvalidInputError("This executor cannot take snapshots", {
        remedy: "Use one of Fenced's executors.",
      });
    }
    return (await executor.checkpoint({ store })).id;
  }

  /** Ends a sandbox, if there is one with this id. */
  end(id: string): Promise<void> {
    return this.#inTurn(id, () => this.#endNow(id));
  }

  async #endNow(id: string): Promise<void> {
    const found = await this.#findNow(id);
    this.#sandboxes.delete(id);
    await found?.executor[Symbol.asyncDispose]();
  }

  /** Ends all sandboxes of this program, also those that are just being made. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ids = new Set([...this.#sandboxes.keys(), ...this.#turns.keys()]);
    await Promise.all([...ids].map((id) => this.end(id)));
  }

  async #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(id) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#turns.set(id, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    }
  }

  #store(): NonNullable<ExecutorSandboxesOptions["snapshots"]> {
    if (this.#options.snapshots) return this.#options.snapshots;
    throw new InvalidInputError("There are no snapshots here", {
      remedy: "Set `snapshots` to a store of @fenced/checkpoints, and pass `restore` on to the executor.",
    });
  }

  async #open(id: string, executor: CodeExecutor, signal: AbortSignal | undefined): Promise<ExecutorSandbox> {
    try {
      await executor.start(signal ? { signal } : {});
      const sandbox = new ExecutorSandbox(id, executor, this.#options.maxOutputBytes ?? 1_048_576);
      this.#sandboxes.set(id, sandbox);
      return sandbox;
    } catch (error) {
      await executor[Symbol.asyncDispose]();
      throw error;
    }
  }
}
