import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { statusOf } from "../cluster/api-error.ts";

/** Milliseconds before each attempt. */
const pauseMs = 250;
/** How many attempts there are: after a second the node is busy with something else, such as the download of the image. */
const attempts = 4;

/**
 * Starts a program in a pod as soon as its container runs. The API knows that up to a second later, since nodes look at their
 * containers once a second; an exec goes to the node, which looks at once.
 *
 * An attempt that comes through is never given up: the pod ends with the program.
 */
export class EarlyExec {
  /** The connection of an attempt that came through; stays pending if none does. */
  readonly early: Promise<WebSocket>;
  readonly #exec: (signal: AbortSignal) => Promise<WebSocket>;
  readonly #end = new AbortController();
  /** Aborted when no other attempt is to be made. */
  readonly #last = new AbortController();
  #connected: (socket: WebSocket) => void = () => {};
  #attempting: Promise<WebSocket | undefined> | undefined;

  /** @param exec - makes one attempt. */
  constructor(exec: (signal: AbortSignal) => Promise<WebSocket>) {
    this.#exec = exec;
    this.early = new Promise((resolve) => {
      this.#connected = resolve;
    });
  }

  /** Begins to try: the node has begun to make the container. */
  begin(): void {
    this.#attempting ??= this.#attempt();
  }

  /** The connection, now that the API says that the container runs: that of an attempt under way, or a new one. */
  async connect(): Promise<WebSocket> {
    this.#last.abort();
    return (await this.#attempting) ?? this.#exec(this.#end.signal);
  }

  /** Ends attempts, and what came of them: the pod is given up. */
  async cancel(): Promise<void> {
    this.#last.abort();
    this.#end.abort();
    (await this.#attempting)?.terminate();
  }

  async #attempt(): Promise<WebSocket | undefined> {
    for (let left = attempts; left > 0; left--) {
      await sleep(pauseMs, undefined, { signal: this.#last.signal }).catch(() => {});
      if (this.#last.signal.aborted) return undefined;
      try {
        const socket = await this.#exec(this.#end.signal);
        this.#connected(socket);
        return socket;
      } catch (error) {
        // The node knows no such container yet. All else is said when the pod runs, if it still is so.
        if (statusOf(error) !== 500) return undefined;
      }
    }
    return undefined;
  }
}
