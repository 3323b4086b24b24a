import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { statusOf } from "../cluster/api-error.ts";

/** Milliseconds before each attempt. */
const pauseMs = 250;
/** Number of attempts: after a second, the node must be doing something else, such as downloading the image. */
const attempts = 4;

/**
 * Starts a program in a pod as soon as its container runs. The API reports that up to a second later, since nodes check their
 * containers once a second; an exec goes to the node, which checks at once.
 *
 * A successful attempt is never abandoned: the pod ends with the program.
 */
export class EarlyExec {
  /** The connection of a successful attempt; stays pending if there is none. */
  readonly early: Promise<WebSocket>;
  readonly #exec: (signal: AbortSignal) => Promise<WebSocket>;
  readonly #end = new AbortController();
  /** Aborted when no more attempts should be made. */
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

  /** Begins the attempts; call it when the node has begun to create the container. */
  begin(): void {
    this.#attempting ??= this.#attempt();
  }

  /** The connection, now that the API says that the container runs: that of a pending attempt, or a new one. */
  async connect(): Promise<WebSocket> {
    this.#last.abort();
    return (await this.#attempting) ?? this.#exec(this.#end.signal);
  }

  /** Ends the attempts and their connection, because the pod is abandoned. */
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
        // 500: the node does not know the container yet. Other errors, if they persist, are reported when the pod runs.
        if (statusOf(error) !== 500) return undefined;
      }
    }
    return undefined;
  }
}
