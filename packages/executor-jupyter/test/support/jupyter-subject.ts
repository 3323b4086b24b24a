import { join } from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import type { CommonExecutorOptions, ExecutorSubject } from "@fenced/executor-testkit";
import { JupyterCodeExecutor, type LocalJupyterServer } from "../../src/index.ts";

/** Executors for the kit that share a server of this host. Host programs start one of their own. */
export function localSubject(name: string, server: LocalJupyterServer, python: string): ExecutorSubject {
  return {
    name,
    create: (options: CommonExecutorOptions) => new JupyterCodeExecutor({ ...withoutCleanup(options), server }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    takesWorkDir: true,
    hostCommand: [
      process.execPath,
      "--conditions=@fenced/source",
      "--import",
      "tsx",
      join(import.meta.dirname, "../fixtures/executor-host.ts"),
      python,
    ],
  };
}

/** Cells are no files, so there is nothing to keep. */
function withoutCleanup({ cleanupTempFiles: _, ...options }: CommonExecutorOptions): CommonExecutorOptions {
  return options;
}
