import type { JupyterServer, ServerLease } from "./jupyter-server.ts";
import { serverAddress, type ServerSettings } from "./server-settings.ts";

/** A server that someone else runs: it is never started or stopped here. */
export class RemoteServer implements JupyterServer {
  readonly isolation = "remote" as const;
  readonly #lease: ServerLease;

  /** @throws InvalidInputError if the address is not usable. */
  constructor(settings: ServerSettings) {
    this.#lease = {
      address: serverAddress(settings),
      ended: () => undefined,
      release: async () => {},
    };
  }

  async acquire(): Promise<ServerLease> {
    return this.#lease;
  }
}
