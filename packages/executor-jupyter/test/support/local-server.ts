import { jupyterPythons } from "@fenced/test-support";
import { afterAll, beforeAll } from "vitest";
import {
  JupyterCodeExecutor,
  LocalJupyterServer,
  type JupyterExecutorOptions,
  type ServerAddress,
} from "../../src/index.ts";

/** Which of the servers of this machine. */
export type ServerVersion = keyof typeof jupyterPythons;

/** A server that the tests of a `describe` share. */
export interface SharedServer {
  readonly server: LocalJupyterServer;
  /** A new executor on it. */
  readonly executor: (options?: JupyterExecutorOptions) => JupyterCodeExecutor;
  /** Where it is, with its token. */
  readonly address: () => Promise<ServerAddress & { readonly token: string }>;
}

/** Starts a server before the tests around it, and stops it after them. */
export function sharedServer(version: ServerVersion = "jupyter"): SharedServer {
  const server = new LocalJupyterServer({ python: jupyterPythons[version] });
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop(), 60_000);
  return {
    server,
    executor: (options) => new JupyterCodeExecutor({ server, ...options }),
    async address() {
      const { address, release } = await server.acquire();
      await release();
      return { ...address, token: (address.headers["Authorization"] ?? "").replace("token ", "") };
    },
  };
}
