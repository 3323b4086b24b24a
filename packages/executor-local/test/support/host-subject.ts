import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";

/** Executors without a sandbox, for the kit. */
export const hostSubject: ExecutorSubject = {
  name: "LocalCommandLineCodeExecutor",
  create: (options) => new LocalCommandLineCodeExecutor(options),
  load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-local") }),
  takesWorkDir: true,
  hostCommand: await bundledCommand(path.join(import.meta.dirname, "../fixtures/executor-host.ts")),
};

/** The supervisor of the executor with this id, which is a child of this process. */
export async function supervisorOf(session: string): Promise<number> {
  const found = (await listProcesses()).filter(
    // The other children are this program's own.
    ({ pid, parent }) => parent === process.pid && hasVariable(pid, "FENCED_SESSION", session),
  );
  const [only, ...others] = found.map(({ pid }) => pid);
  if (only === undefined || others.length > 0) throw new Error(`${found.length} supervisors`);
  return only;
}
