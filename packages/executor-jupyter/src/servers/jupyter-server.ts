import type { ExecutorCapabilities, NetworkDecision } from "@fenced/core";
import type { ServerAddress } from "./server-settings.ts";

/** A server in use by an executor: it runs as long as anyone holds a lease. */
export interface ServerLease {
  /** The server's URL, and the headers that carry its token. */
  readonly address: ServerAddress;
  /** Set if kernels are processes of this host, and files are its files. */
  readonly host?: {
    /** A directory that is deleted with the server, even when this program is killed. */
    readonly scratch: string;
  };
  /** Which kernel of an operating system answers the system calls of its code, as `ExecutorCapabilities.kernel`. Absent if not known. */
  readonly systemKernel?: ExecutorCapabilities["kernel"];
  /** The working directory that the server gives its kernels, as they name it, if there is one. */
  readonly workspace?: string;
  /**
   * A directory of this host that the kernels can write to, although they have no access to the rest of the host.
   * Rich outputs are not saved in it.
   */
  readonly bound?: string;
  /** Starts to collect the requests that the server's network policy, if any, refuses; returns a function that returns them. */
  readonly collectRefusals?: () => () => readonly NetworkDecision[];
  /** Why a kernel that just ended was killed, if it was for lack of memory; in words, without a full stop. */
  readonly outOfMemory?: () => Promise<string | undefined>;
  /** Why the server ended, as soon as it has. */
  readonly ended: () => string | undefined;
  /** Releases the server. */
  release(): Promise<void>;
}

/** A Jupyter server that several executors may share, or something that starts one. */
export interface JupyterServer {
  /** How the server's kernels are isolated from this host. */
  readonly isolation: "none" | "container" | "remote";
  /** What its kernels can connect to, as `ExecutorCapabilities.network`. Absent if not known, as of a remote server. */
  readonly network?: ExecutorCapabilities["network"] | undefined;

  /**
   * Acquires a lease on the server, and starts the server if it is not running. The server ends when the last lease is
   * released, unless it was started by its own `start()`.
   *
   * @param signal - stops waiting.
   */
  acquire(signal?: AbortSignal): Promise<ServerLease>;
}

/** Distinguishes a `JupyterServer` from the settings of one. */
export function isJupyterServer(server: object): server is JupyterServer {
  return "acquire" in server && typeof server.acquire === "function";
}
