import type { CodeExecutor } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";

/** The process ids of an executor's interpreters; without an executor, of all that this program started. */
export async function interpreterProcesses(executor?: CodeExecutor): Promise<number[]> {
  const children = (await listProcesses()).filter(({ parent }) => parent === process.pid).map(({ pid }) => pid);
  if (!executor) return children;
  const mark: unknown = Reflect.get(executor, "id");
  return children.filter((pid) => hasVariable(pid, "FENCED_SESSION", String(mark)));
}

/** Ends an executor's interpreters, as a crash would. */
export async function killInterpreter(executor: CodeExecutor): Promise<void> {
  const pids = await interpreterProcesses(executor);
  if (pids.length === 0) throw new Error("There is no interpreter to kill.");
  for (const pid of pids) process.kill(pid, "SIGKILL");
}
