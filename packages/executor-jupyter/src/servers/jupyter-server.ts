import type { ServerAddress } from "./server-settings.ts";

/** A server that an executor uses: it runs as long as somebody holds it. */
export interface ServerLease {
  readonly address: ServerAddress;
  /** Set if kernels are processes of this host, and files are its files. */
  readonly host?: {
    /** A directory that is deleted with the server, also when this program is killed. */
    readonly scratch: string;
  };
  /** A directory that the server gives its kernels to work in, as they name it, if it does. */
  readonly workspace?: string;
  /**
   * A directory of this host that the kernels can write to although they are kept from the rest of the host. Rich outputs
   * are not saved in it.
   */
  readonly bound?: string;
  /** Why the server has ended, as soon as it has. */
  readonly ended: () => string | undefined;
  /** Lets go of the server. */
  release(): Promise<void>;
}

/** Something that starts a Jupyter server, or several executors' way to one. */
export interface JupyterServer {
  /** What stands between the server's kernels and this host. */
  readonly isolation: "none" | "container" | "remote";

  /**
   * Takes hold of the server, which is started if it does not run. It ends when the last hold is let go, unless it was
   * started by its own `start()`.
   *
   * @param signal - gives up waiting.
   */
  acquire(signal?: AbortSignal): Promise<ServerLease>;
}

/** Tells a server of this package from the address of one. */
export function isJupyterServer(server: object): server is JupyterServer {
  return "acquire" in server && typeof server.acquire === "function";
}
