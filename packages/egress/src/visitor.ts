import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** Requests on one connection that may wait for the answer to an earlier one. */
const mostPipelined = 16;

/** One connection to the proxy, from its first byte to its end. */
export class Visitor {
  readonly stream: Duplex;
  /** The password that the client must send; `undefined` if it needs none. */
  readonly secret: string | undefined;
  readonly #patienceMs: number;
  readonly #controller = new AbortController();
  /** Aborted when the connection is gone. */
  readonly signal: AbortSignal = this.#controller.signal;
  #timer: NodeJS.Timeout | undefined;
  #turns: Promise<unknown> = Promise.resolve();
  #requests = 0;

  /** @param patienceMs - milliseconds for a request to arrive before the connection ends. */
  constructor(stream: Duplex, secret: string | undefined, patienceMs: number) {
    this.stream = stream;
    this.secret = secret;
    this.#patienceMs = patienceMs;
    stream.on("error", () => {});
    stream.once("close", () => {
      this.arrived();
      this.#controller.abort();
    });
    this.expect();
  }

  /** Ends the connection unless something arrives in time. */
  expect(): void {
    this.arrived();
    if (!this.stream.destroyed) this.#timer = setTimeout(() => this.stream.destroy(), this.#patienceMs).unref();
  }

  /** Records that the expected data has arrived. */
  arrived(): void {
    clearTimeout(this.#timer);
  }

  /** Waits until all earlier requests of the connection are answered: each opens a connection of its own. */
  async turn(response: ServerResponse): Promise<void> {
    this.arrived();
    const before = this.#turns;
    this.#requests += 1;
    if (this.#requests > mostPipelined) this.stream.destroy();
    this.#turns = once(response, "close").then(() => {
      this.#requests -= 1;
      if (this.#requests === 0) this.expect();
    });
    await before;
  }
}
