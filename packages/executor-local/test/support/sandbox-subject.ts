import { readFile } from "node:fs/promises";
import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import type { ExecutorSubject } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { isAlive } from "@fenced/test-support/is-alive";
import { expect } from "vitest";

const hostCommand = await bundledCommand(path.join(import.meta.dirname, "../fixtures/sandbox-host.ts"));

/** Sandboxed executors for the kit. */
export const sandboxSubject: ExecutorSubject = {
  name: "LocalCommandLineCodeExecutor, in an OS sandbox,",
  create: (options) => new LocalCommandLineCodeExecutor({ ...options, isolation: "os-sandbox" }),
  load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-local") }),
  takesWorkDir: true,
  takesNetworkPolicy: true,
  hostCommand,
  breakPlace: async (executor) => killSandbox(await bubblewrapsOf(executor)),
};

/**
 * Kills the processes of bubblewrap, and waits until they are dead: before that, the sandbox may still run a block to its end.
 */
export async function killSandbox(bubblewraps: readonly number[]): Promise<void> {
  expect(bubblewraps).not.toEqual([]);
  for (const pid of bubblewraps) process.kill(pid, "SIGKILL");
  await expect.poll(() => bubblewraps.filter((pid) => isAlive(pid)), { timeout: 60_000 }).toEqual([]);
}

/** The processes of bubblewrap on this host that hold the executor's sandbox. */
export async function bubblewrapsOf(executor: CodeExecutor): Promise<number[]> {
  const result = await executor.executeCodeBlocks([{ language: "sh", code: "echo $FENCED_SESSION" }]);
  return bubblewrapsWith(result.stdout.trim());
}

/** Those whose sandbox belongs to the executor with this id. */
export async function bubblewrapsWith(session: string): Promise<number[]> {
  const pids: number[] = [];
  for (const { pid } of await listProcesses()) {
    if (!hasVariable(pid, "FENCED_SESSION", session)) continue;
    const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
    if (name === "bwrap\n") pids.push(pid);
  }
  return pids;
}
