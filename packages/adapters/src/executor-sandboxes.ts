import { randomUUID } from "node:crypto";
import { InvalidInputError, type CheckpointStore, type CodeExecutor } from "@fenced/core";
import { longestTimer, untilAborted } from "@fenced/core/abort";
import { checkOptions, codeExecutorOption } from "@fenced/core/options";
import * as z from "zod";
import { ExecutorSandbox } from "./executor-sandbox.ts";
import { executorSandboxesOptions, type ExecutorSandboxesOptions } from "./executor-sandboxes-options.ts";

/** How a sandbox is created. */
export interface SandboxCreation {
  /** The id of the snapshot to begin with. Default: an empty sandbox. */
  readonly snapshot?: string | undefined;
  /** Milliseconds after which it is ended. Default: no limit. */
  readonly lifetimeMs?: number | undefined;
  /** Passed on as `SandboxRequest.given`. Default: nothing. */
  readonly given?: Readonly<Record<string, unknown>> | undefined;
  /** Gives up. */
  readonly signal?: AbortSignal | undefined;
}

const made = z.object({ executor: codeExecutorOption });

/** The sandboxes of an adapter, by their ids. The base for adapters of other frameworks than those that have one here. */
export class ExecutorSandboxes implements AsyncDisposable {
  readonly #options: ExecutorSandboxesOptions;
  readonly #sandboxes = new Map<string, ExecutorSandbox>();
  readonly #timers = new Map<ExecutorSandbox, NodeJS.Timeout>();
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
   * @param id - default: a new one.
   * @throws InvalidInputError if there are no snapshots, or the executor cannot start programs; the executor's errors.
   */
  create(
    id: string = randomUUID(),
    { snapshot, lifetimeMs, given = {}, signal }: SandboxCreation = {},
  ): Promise<ExecutorSandbox> {
    return this.#inTurn(id, async () => {
      const restore = snapshot === undefined ? {} : { restore: { store: this.store, id: snapshot } };
      await this.#endNow(id);
      const asked = { id, given, ...restore, ...(signal ? { signal } : {}) };
      const creating = Promise.resolve(this.#options.createExecutor(asked));
      const executor = await untilAborted(creating, signal).catch((error: unknown) => {
        // One that comes too late is nobody's.
        creating.then((late) => late[Symbol.asyncDispose]()).catch(() => {});
        throw error;
      });
      const checked = checkOptions(made, { executor }, "createExecutor").executor;
      const sandbox = await this.#open(id, checked, { lifetimeMs, signal });
      if (lifetimeMs !== undefined) this.#timers.set(sandbox, this.#endAfter(lifetimeMs, sandbox));
      return sandbox;
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
    return this.#open(id, checkOptions(made, { executor }, "resumeExecutor").executor, { signal });
  }

  /** The sandboxes of this program, oldest first. */
  list(): ExecutorSandbox[] {
    return [...this.#sandboxes.values()];
  }

  /**
   * Keeps the files of a sandbox.
   *
   * @param signal - gives up.
   * @returns the snapshot's id, for `create`.
   * @throws InvalidInputError if there are no snapshots, or the executor has no `checkpoint()`.
   */
  async snapshot({ executor }: ExecutorSandbox, signal?: AbortSignal): Promise<string> {
    const store = this.store;
    if (!executor.checkpoint) {
      throw new InvalidInputError("This executor cannot take snapshots", {
        remedy: "Use one of Fenced's executors.",
      });
    }
    return (await executor.checkpoint({ store, signal })).id;
  }

  /** Ends a sandbox: the one with an id, if there is one, or this very one, if no other has replaced it. */
  end(which: string | ExecutorSandbox): Promise<void> {
    if (typeof which === "string") return this.#inTurn(which, () => this.#endNow(which));
    const { id } = which;
    return this.#inTurn(id, async () => {
      if (this.#sandboxes.get(id) === which) await this.#endNow(id);
    });
  }

  async #endNow(id: string): Promise<void> {
    const found = await this.#findNow(id);
    if (!found) return;
    clearTimeout(this.#timers.get(found));
    this.#timers.delete(found);
    this.#sandboxes.delete(id);
    await found.executor[Symbol.asyncDispose]();
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

  #endAfter(lifetimeMs: number, sandbox: ExecutorSandbox): NodeJS.Timeout {
    const end = (): void => {
      // Nobody waits for it. What cannot be ended now is ended when its id is used again, or with the program.
      this.end(sandbox).catch(() => {});
    };
    return setTimeout(end, Math.min(lifetimeMs, longestTimer)).unref();
  }

  /** Where snapshots are kept. @throws InvalidInputError if there are none. */
  get store(): CheckpointStore {
    if (this.#options.snapshots) return this.#options.snapshots;
    throw new InvalidInputError("There are no snapshots here", {
      remedy: "Set `snapshots` to a store of @fenced/checkpoints, and pass `restore` on to the executor.",
    });
  }

  async #open(
    id: string,
    executor: CodeExecutor,
    { lifetimeMs, signal }: Pick<SandboxCreation, "lifetimeMs" | "signal">,
  ): Promise<ExecutorSandbox> {
    try {
      await executor.start(signal ? { signal } : {});
      const sandbox = new ExecutorSandbox(id, executor, { maxOutputBytes: this.#options.maxOutputBytes, lifetimeMs });
      this.#sandboxes.set(id, sandbox);
      return sandbox;
    } catch (error) {
      await executor[Symbol.asyncDispose]();
      throw error;
    }
  }
}
