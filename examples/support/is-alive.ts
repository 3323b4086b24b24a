import { setTimeout as sleep } from "node:timers/promises";

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Waits up to ten seconds for a process to end, and returns whether it did. */
export async function hasEnded(pid: number): Promise<boolean> {
  for (let tries = 0; isAlive(pid) && tries < 100; tries++) await sleep(100);
  return !isAlive(pid);
}
