import type { HostFunction } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { Room } from "../run/room.ts";

/**
 * The host functions that this program has for a run that goes on without a program. A call of another function of the
 * run waits until there is one.
 */
export class RunFunctions {
  readonly functions: Map<string, HostFunction>;
  readonly #more = new Room();

  constructor(functions: Iterable<readonly [string, HostFunction]>) {
    this.functions = new Map(functions);
  }

  offer(functions: readonly HostFunction[]): void {
    for (const each of functions) this.functions.set(each.name, each);
    this.#more.open();
  }

  /**
   * Waits for one of the run's functions, if this program does not have it.
   *
   * @param names - of the run's functions.
   */
  async ready(name: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    while (names.includes(name) && !this.functions.has(name)) await untilAborted(this.#more.opened, signal);
  }
}
