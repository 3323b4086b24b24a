import { randomUUID } from "node:crypto";
import type { JsonObject } from "@fenced/core";
import { ConnectError } from "./connect-error.ts";
import { toConnectError } from "./connect-protocol.ts";

/** Watchers of one sandbox, and events of one watcher. */
const [mostWatchers, mostEvents] = [64, 10_000];

interface PolledWatcher {
  readonly events: JsonObject[];
  readonly stop: AbortController;
  error: ConnectError | undefined;
}

/** Watched directories whose events clients ask for from time to time. */
export class PolledWatchers {
  readonly #watchers = new Map<string, PolledWatcher>();

  /**
   * Watches until `close`.
   *
   * @param watch - yields the events, first of all one that says that it has begun.
   * @returns the watcher's id.
   * @throws ConnectError if the directory cannot be watched.
   */
  async open(watch: (signal: AbortSignal) => AsyncGenerator<JsonObject, void, void>): Promise<string> {
    if (this.#watchers.size >= mostWatchers) {
      throw new ConnectError("resource_exhausted", `A sandbox can have at most ${mostWatchers} watchers; remove one`);
    }
    const [id, watcher] = [randomUUID(), { events: [], stop: new AbortController(), error: undefined }];
    this.#watchers.set(id, watcher);
    try {
      const events = watch(watcher.stop.signal);
      await events.next();
      void collect(watcher, events);
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
    const { events, error } = this.#find(id);
    if (events.length === 0 && error) throw error;
    return events.splice(0);
  }

  /** @throws ConnectError if there is no such watcher. */
  close(id: string): void {
    this.#find(id).stop.abort();
    this.#watchers.delete(id);
  }

  closeAll(): void {
    for (const { stop } of this.#watchers.values()) stop.abort();
    this.#watchers.clear();
  }

  #find(id: string): PolledWatcher {
    const found = this.#watchers.get(id);
    if (found) return found;
    throw new ConnectError("not_found", `watcher with id ${id} not found`);
  }
}

async function collect(watcher: PolledWatcher, events: AsyncIterable<JsonObject>): Promise<void> {
  try {
    for await (const event of events) {
      if (watcher.events.length >= mostEvents) throw new ConnectError("resource_exhausted", "Too many events");
      watcher.events.push(event);
    }
  } catch (error) {
    watcher.error = toConnectError(error);
  }
}
