import { randomUUID } from "node:crypto";
import type { JsonObject } from "@fenced/core";
import type { WatchedDirectory } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";

/** Watchers of one sandbox. */
const mostWatchers = 64;

/** Watched directories whose events clients ask for from time to time. */
export class PolledWatchers {
  readonly #watchers = new Map<string, WatchedDirectory | undefined>();

  /**
   * Watches until `close`.
   *
   * @returns the watcher's id.
   * @throws ConnectError if the directory cannot be watched.
   */
  async open(watch: () => Promise<WatchedDirectory>): Promise<string> {
    if (this.#watchers.size >= mostWatchers) {
      throw new ConnectError("resource_exhausted", `A sandbox can have at most ${mostWatchers} watchers; remove one`);
    }
    const id = randomUUID();
    this.#watchers.set(id, undefined);
    try {
      this.#watchers.set(id, await watch());
      return id;
    } catch (error) {
      this.#watchers.delete(id);
      throw error;
    }
  }

  /**
   * Returns what has happened since the last call.
   *
   * @throws ConnectError if there is no such watcher, or it has ended.
   */
  take(id: string): JsonObject[] {
    return this.#find(id).events.take();
  }

  /** @throws ConnectError if there is no such watcher. */
  close(id: string): void {
    this.#find(id).close();
    this.#watchers.delete(id);
  }

  closeAll(): void {
    for (const watched of this.#watchers.values()) watched?.close();
    this.#watchers.clear();
  }

  #find(id: string): WatchedDirectory {
    const found = this.#watchers.get(id);
    if (found) return found;
    throw new ConnectError("not_found", `watcher with id ${id} not found`);
  }
}
