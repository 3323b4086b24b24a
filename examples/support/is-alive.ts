import { setTimeout as sleep } from "node:timers/promises";

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Waits up to ten seconds for the end of a process, and says whether it came. */
export async function hasEnded(pid: number): Promise<boolean> {
  for (let tries = 0; isAlive(pid) && tries < 100; tries++) await sleep(100);
  return !isAlive(pid);
}
