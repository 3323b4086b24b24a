import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CodeExecutor, connectExecutor, loadComponent } from "@fenced/core";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { JupyterCodeExecutor, type JupyterExecutorOptions } from "../../src/index.ts";
import { KernelApi } from "./kernel-api.ts";
import type { PlainServer } from "./plain-server.ts";

const hostProgram = path.join(import.meta.dirname, "../fixtures/remote-host.ts");

/**
 * What sessions on a server have left behind: kernels, keepers, and directories.
 *
 * @param forMs - milliseconds for keepers to end.
 */
export async function remains(server: PlainServer, forMs = 1000): Promise<string[]> {
  const { baseUrl, token = "" } = server.settings;
  const address = { baseUrl, headers: { Authorization: `token ${token}` }, legacyWebSocket: false };
  const kernels = await new KernelApi(address).list();
  // They remove the directories.
  const lasting = await lastingKeepers(server, forMs);
  const directories = (await readdir(server.home)).filter((name) => name.startsWith("fenced-"));
  return [...kernels, ...directories, ...lasting.map(String)];
}

/** The keepers of a server's kernels that are still there after this time: one ends a little later than its kernel. */
async function lastingKeepers(server: PlainServer, forMs: number): Promise<number[]> {
  const end = Date.now() + forMs;
  while (Date.now() < end && (await keepers(server)).length > 0) await sleep(50);
  return keepers(server);
}

/** The processes of keepers of a server's kernels. */
export async function keepers({ home }: PlainServer): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = pids.map(async (pid) => {
    const read = (name: string) => readFile(`/proc/${pid}/${name}`, "latin1").catch(() => "");
    return (await read("comm")) === "fenced-session\n" && (await read("cmdline")).includes(`${home}/`);
  });
  const kept = await Promise.all(found);
  return pids.filter((_, index) => kept[index] === true).map(Number);
}

/** Executors for the kit whose sessions are on a server that this package did not start. */
export function keptSubject(
  server: () => PlainServer,
  settings: Partial<JupyterExecutorOptions> = {},
): ExecutorSubject {
  return {
    name: "JupyterCodeExecutor, on a server that somebody else runs,",
    create: ({ cleanupTempFiles: _, ...options }) =>
      new JupyterCodeExecutor({ server: server().settings, ...settings, ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    connect: (handle, options) =>
      connectExecutor(handle, { ...options, importModule: () => import("../../src/index.ts") }),
    takesWorkDir: false,
    live: true,
    runsEnd: true,
    get hostCommand(): ExecutorSubject["hostCommand"] {
      const words = [JSON.stringify(server().settings), JSON.stringify(settings)];
      return [process.execPath, "--conditions=@fenced/source", "--import", "tsx", hostProgram, ...words];
    },
    listResources: () => remains(server()),
  };
}
