import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import type { CommonExecutorOptions, ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { JupyterCodeExecutor, type LocalJupyterServer } from "../../src/index.ts";

const hostCommand = await bundledCommand(join(import.meta.dirname, "../fixtures/executor-host.ts"));

/** Executors for the kit that share a server of this host. Host programs start one of their own. */
export function localSubject(name: string, server: LocalJupyterServer, python: string): ExecutorSubject {
  return {
    name,
    create: (options: CommonExecutorOptions) => new JupyterCodeExecutor({ ...withoutCleanup(options), server }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    takesWorkDir: true,
    breakPlace: () => killKernels(server),
    hostCommand: [...hostCommand, python],
  };
}

/** Kills the processes of the server's kernels, whose command lines contain their ids. */
async function killKernels(server: LocalJupyterServer): Promise<void> {
  const lease = await server.acquire(new AbortController().signal);
  try {
    const { baseUrl, headers } = lease.address;
    const kernels: unknown = await (await fetch(new URL("api/kernels", baseUrl), { headers })).json();
    const ids = Array.isArray(kernels) ? kernels.map(({ id }: { id: string }) => id) : [];
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    for (const pid of pids) {
      const command = await readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
      if (ids.some((id) => command.includes(id))) process.kill(Number(pid), "SIGKILL");
    }
  } finally {
    await lease.release();
  }
}

/** Cells are not files, so there is nothing to keep. */
function withoutCleanup({ cleanupTempFiles: _, ...options }: CommonExecutorOptions): CommonExecutorOptions {
  return options;
}
