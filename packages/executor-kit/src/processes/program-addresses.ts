import type { Duplex } from "node:stream";
import { InvalidInputError } from "@fenced/core";
import { PublishedPorts } from "./published-ports.ts";

/** How many ports of one executor's programs can have an address. */
const mostAddresses = 64;

/** Addresses of this host that lead to the ports of an executor's programs, each until the executor stops. */
export class ProgramAddresses {
  readonly #connect: (port: number) => Duplex | undefined;
  #opened = new Map<number, Promise<PublishedPorts>>();

  /** @param connect - connects to a port in the place that is open then; `undefined` if there is none. */
  constructor(connect: (port: number) => Duplex | undefined) {
    this.#connect = connect;
  }

  /**
   * The address of a port.
   *
   * @param signal - closes all addresses once it is aborted.
   * @throws InvalidInputError if there are too many; `signal.reason`.
   */
  async of(port: number, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const opened = this.#opened;
    if (!opened.has(port) && opened.size >= mostAddresses) {
      throw new InvalidInputError(`${mostAddresses} ports of the programs have addresses already, the most at a time`, {
        remedy: "Let one program pass requests on to the others, or restart the executor with stop() and start().",
      });
    }
    if (opened.size === 0) signal.addEventListener("abort", () => void this.#close(), { once: true });
    const opening = opened.get(port) ?? PublishedPorts.open(new Map([[port, 0]]), this.#connect);
    opened.set(port, opening);
    try {
      const { ports } = await opening;
      signal.throwIfAborted();
      return `127.0.0.1:${ports.get(port) ?? 0}`;
    } catch (error) {
      if (opened.get(port) === opening) opened.delete(port);
      throw error;
    }
  }

  async #close(): Promise<void> {
    const opened = [...this.#opened.values()];
    this.#opened = new Map();
    for (const opening of await Promise.allSettled(opened)) if (opening.status === "fulfilled") opening.value.close();
  }
}
