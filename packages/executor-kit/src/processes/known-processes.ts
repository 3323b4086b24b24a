import type { ListedProcess } from "@fenced/core";
import type { ProcessDescription } from "./process-options.ts";
import type { StartedProcess } from "./started-process.ts";

/** How long a program that has ended can be connected to, in milliseconds, and how many can. */
const rememberedMs = 60_000;
const mostRemembered = 1000;
/** Programs that a list has. */
const mostListed = 1000;

/** The programs of an executor by their process ids, until some time after their end. */
export class KnownProcesses {
  readonly #running = new Map<StartedProcess, ProcessDescription>();
  readonly #ended = new Map<number, { readonly process: StartedProcess; readonly at: number }>();

  /** Adds a program that has begun. */
  add(process: StartedProcess, description: ProcessDescription): void {
    if (process.pid === undefined) return;
    this.#running.set(process, description);
    void process.exit.then(
      () => this.#end(process),
      () => this.#running.delete(process),
    );
  }

  /** The programs that run, oldest first. */
  running(): readonly ListedProcess[] {
    const all = [...this.#running].flatMap(([{ pid, isOver }, description]) =>
      pid === undefined || isOver ? [] : [{ pid, ...description }],
    );
    return all.toSorted((one, other) => Number(one.startedAt) - Number(other.startedAt)).slice(0, mostListed);
  }

  find(pid: number): StartedProcess | undefined {
    // A process id may have been used before.
    const running = [...this.#running.keys()].findLast((each) => each.pid === pid);
    if (running) return running;
    const ended = this.#ended.get(pid);
    return ended && performance.now() - ended.at < rememberedMs ? ended.process : undefined;
  }

  #end(process: StartedProcess): void {
    this.#running.delete(process);
    if (process.pid === undefined) return;
    const now = performance.now();
    this.#ended.delete(process.pid);
    this.#ended.set(process.pid, { process, at: now });
    for (const [pid, { at }] of this.#ended) {
      if (this.#ended.size <= mostRemembered && now - at < rememberedMs) break;
      this.#ended.delete(pid);
    }
  }
}
