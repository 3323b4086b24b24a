import type { CodeExecutor } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";

/** Returns the options of executors that cases share; the function object itself identifies these executors. */
export type SharedOptions = () => CommonExecutorOptions;

/**
 * Started executors that cases borrow. Only one case at a time uses an executor; concurrent cases get different ones.
 */
export class SharedExecutors {
  readonly #idle = new Map<SharedOptions, CodeExecutor[]>();
  #ended = false;

  /** Returns a started executor with an empty workspace that no case is using; `undefined` if there is none. */
  borrow(options: SharedOptions): CodeExecutor | undefined {
    return this.#idle.get(options)?.pop();
  }

  /**
   * Takes back an executor, or accepts a new one, for the next case: in its state after the start, except for
   * variables.
   */
  async giveBack(options: SharedOptions, executor: CodeExecutor): Promise<void> {
    await emptyWorkspace(executor);
    // A case that its runner has given up may end after all others.
    if (this.#ended) return executor.stop();
    this.#idle.set(options, [...(this.#idle.get(options) ?? []), executor]);
  }

  /** Stops executors that no case is using. Later cases get new ones. */
  async stop(): Promise<void> {
    const executors = [...this.#idle.values()].flat();
    this.#idle.clear();
    const outcomes = await Promise.allSettled(executors.map((executor) => executor.stop()));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** Does the same after the last case. */
  end(): Promise<void> {
    this.#ended = true;
    return this.stop();
  }
}

async function emptyWorkspace({ files }: CodeExecutor): Promise<void> {
  const names = new Set((await files.list()).map(({ path }) => path.split("/", 1).join()));
  for (const name of names) await files.remove(name);
}
