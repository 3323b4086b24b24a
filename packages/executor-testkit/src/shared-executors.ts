import type { CodeExecutor } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";

/** Gives the options of executors that cases share; the function itself is what tells these executors from others. */
export type SharedOptions = () => CommonExecutorOptions;

/** Started executors that cases borrow, one case at a time: a case beside another one gets another executor. */
export class SharedExecutors {
  readonly #idle = new Map<SharedOptions, CodeExecutor[]>();
  #ended = false;

  /** One that no case has now, started and with an empty workspace; `undefined` if there is none. */
  borrow(options: SharedOptions): CodeExecutor | undefined {
    return this.#idle.get(options)?.pop();
  }

  /** Takes an executor back, or a new one in, for the next case: as it was when it was started, but for its variables. */
  async giveBack(options: SharedOptions, executor: CodeExecutor): Promise<void> {
    await emptyWorkspace(executor);
    // A case that its runner gave up may end after all others.
    if (this.#ended) return executor.stop();
    this.#idle.set(options, [...(this.#idle.get(options) ?? []), executor]);
  }

  /** Stops those that no case has. Cases that follow get new ones. */
  async stop(): Promise<void> {
    const executors = [...this.#idle.values()].flat();
    this.#idle.clear();
    const outcomes = await Promise.allSettled(executors.map((executor) => executor.stop()));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** The same after the last case. */
  end(): Promise<void> {
    this.#ended = true;
    return this.stop();
  }
}

async function emptyWorkspace({ files }: CodeExecutor): Promise<void> {
  const names = new Set((await files.list()).map(({ path }) => path.split("/", 1).join()));
  for (const name of names) await files.remove(name);
}
