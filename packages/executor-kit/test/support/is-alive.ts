import { listProcesses } from "@fenced/executor-kit";

/** Whether a process runs; one whose first thread alone has ended does. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await listProcesses()).some((each) => each.pid === pid);
}
