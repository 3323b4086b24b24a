import { backend, jupyterPythons } from "@fenced/test-support";
import { afterAll, beforeAll, onTestFailed } from "vitest";
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
  /** One that tests share which leave no more than variables and files behind. After a test that failed it is another one. */
  readonly shared: () => JupyterCodeExecutor;
  /** Where it is, with its token. */
  readonly address: () => Promise<ServerAddress & { readonly token: string }>;
}

/** Starts a server before the tests around it, and stops it after them. */
export function sharedServer(version: ServerVersion = "jupyter"): SharedServer {
  const server = new LocalJupyterServer({ python: jupyterPythons[version] });
  beforeAll(() => server.start(), 60_000);
  afterAll(() => server.stop(), 60_000);
  let shared: JupyterCodeExecutor | undefined;
  afterAll(() => shared?.stop(), 60_000);
  return {
    server,
    executor: (options) => new JupyterCodeExecutor({ server, ...options }),
    shared() {
      const executor = (shared ??= new JupyterCodeExecutor({ server }));
      onTestFailed(async () => {
        shared = undefined;
        await executor.stop();
      });
      return executor;
    },
    async address() {
      const { address, release } = await server.acquire();
      await release();
      return { ...address, token: (address.headers["Authorization"] ?? "").replace("token ", "") };
    },
  };
}

/**
 * The servers for tests of what depends little on their version: the newest that is here. Each of them where `FENCED_SUITE` is
 * `full`, as in `.ci/full`.
 */
export const anyVersion: readonly ServerVersion[] =
  process.env["FENCED_SUITE"] === "full"
    ? ["jupyter", "jupyter2"]
    : [backend("jupyter2").available ? "jupyter2" : "jupyter"];
