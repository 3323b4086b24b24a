import type { JupyterServer, ServerLease } from "./jupyter-server.ts";
import { logIn } from "./log-in.ts";
import { serverAddress, type ServerAddress, type ServerSettings } from "./server-settings.ts";

/** A server that someone else runs: it is never started or stopped here. */
export class RemoteServer implements JupyterServer {
  readonly isolation = "remote" as const;
  readonly #address: ServerAddress;
  readonly #password: string | undefined;

  /** @throws InvalidInputError if the address is not usable. */
  constructor(settings: ServerSettings) {
    this.#address = serverAddress(settings);
    this.#password = settings.password;
  }

  /** @throws BackendUnavailableError if the server does not accept the password. */
  async acquire(signal?: AbortSignal): Promise<ServerLease> {
    const address = this.#password === undefined ? this.#address : await logIn(this.#address, this.#password, signal);
    return { address, ended: () => undefined, release: async () => {} };
  }
}
