import { backend, jupyterPythons } from "@fenced/test-support";
import { afterAll, beforeAll, onTestFailed } from "vitest";
import {
  JupyterCodeExecutor,
  LocalJupyterServer,
  type JupyterExecutorOptions,
  type ServerAddress,
} from "../../src/index.ts";

/** One of this machine's Jupyter servers. */
export type ServerVersion = keyof typeof jupyterPythons;

/** A server that the tests of a `describe` share. */
export interface SharedServer {
  readonly server: LocalJupyterServer;
  /** A new executor on it. */
  readonly executor: (options?: JupyterExecutorOptions) => JupyterCodeExecutor;
  /** One that is shared by tests that leave only variables and files behind. After a failed test, it is replaced. */
  readonly shared: () => JupyterCodeExecutor;
  /** Its address, with its token. */
  readonly address: () => Promise<ServerAddress & { readonly token: string }>;
}

/**
 * The servers for tests that depend little on the version: the newest one of this machine, or each one if `FENCED_SUITE` is
 * `full`, as in `.ci/full`.
 */
export const anyVersion: readonly ServerVersion[] =
  process.env["FENCED_SUITE"] === "full"
    ? ["jupyter", "jupyter2"]
    : [backend("jupyter2").available ? "jupyter2" : "jupyter"];

/**
 * The servers of this process, which all of its test files use: to start one takes as much processor time as three kernels. They end
 * with the process, like those of a program that never stops its executors.
 */
const servers = new Map<ServerVersion, LocalJupyterServer>();

function serverOf(version: ServerVersion): LocalJupyterServer {
  const known = servers.get(version);
  if (known) return known;
  const server = new LocalJupyterServer({ python: jupyterPythons[version] });
  servers.set(version, server);
  return server;
}

/**
 * A server for the tests of a `describe`, which leave no kernels there.
 *
 * @param version - default: the first of `anyVersion`.
 */
export function sharedServer(version: ServerVersion = anyVersion[0] ?? "jupyter"): SharedServer {
  const server = serverOf(version);
  beforeAll(() => server.start(), 60_000);
  let shared: JupyterCodeExecutor | undefined;
  afterAll(() => shared?.stop(), 120_000);
  return {
    server,
    executor: (options) => new JupyterCodeExecutor({ server, ...options }),
    shared() {
      // On a slow machine, an interrupted cell may need more than the default to end.
      const executor = (shared ??= new JupyterCodeExecutor({ server, interruptGraceMs: 15_000 }));
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
