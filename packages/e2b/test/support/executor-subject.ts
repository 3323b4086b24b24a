import path from "node:path";
import { connectExecutor, loadComponent, type CodeExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll } from "vitest";
import { E2BCodeExecutor, type E2BExecutorOptions, type E2BHandlerOptions } from "../../src/index.ts";
import { apiKey, startServer, type TestServer } from "./start-server.ts";

const hostProgram = path.join(import.meta.dirname, "../fixtures/executor-host.ts");

/** Sandboxes of the operating system: what an executor keeps in one's temporary directory goes with it. */
export const sandboxed: Pick<E2BHandlerOptions, "templates"> = {
  templates: {
    base: {
      network: "open",
      create: ({ network = "open" }) => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network }),
    },
  },
};

/** A server for the tests of a file. */
export async function sandboxServer(): Promise<TestServer> {
  const server = await startServer({ ...sandboxed, maxSandboxes: 100 });
  afterAll(() => server[Symbol.asyncDispose]());
  // For executors of this program, and for those of others that it starts.
  process.env["E2B_API_KEY"] = apiKey;
  return server;
}

/** The ids of the sandboxes on a server. */
export async function sandboxesOf({ url }: TestServer): Promise<string[]> {
  const response = await fetch(`${url}/v2/sandboxes`, { headers: { "x-api-key": apiKey } });
  const listed: unknown = await response.json();
  return Array.isArray(listed) ? listed.map((each: object) => String(Reflect.get(each, "sandboxID"))) : [];
}

/** Ends a sandbox behind the back of its executor. */
export async function killSandbox({ url }: TestServer, id: string): Promise<void> {
  await fetch(`${url}/sandboxes/${id}`, { method: "DELETE", headers: { "x-api-key": apiKey } });
}

/** Executors for the kit on a server of the tests. */
export async function e2bSubject(
  name: string,
  server: TestServer,
  settings: E2BExecutorOptions = {},
): Promise<ExecutorSubject> {
  const { url } = server;
  return {
    name,
    create: (options) => new E2BCodeExecutor({ apiUrl: url, sandboxUrl: url, ...settings, ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    connect: (handle, options) =>
      connectExecutor(handle, { ...options, importModule: () => import("../../src/index.ts") }),
    takesWorkDir: false,
    takesNetworkPolicy: true,
    live: true,
    hostCommand: await bundledCommand(hostProgram, url, JSON.stringify(settings)),
    breakPlace: async (executor) => {
      if (executor instanceof E2BCodeExecutor) await killSandbox(server, executor.sandboxId ?? "");
    },
    listResources: () => sandboxesOf(server),
  };
}
