import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds after which processes that start others faster than they are killed are given up. */
const patienceMs = 10_000;

/**
 * Kills all processes that were started with this environment variable, until none is left. For sessions without
 * namespaces, whose supervisor can end before what it started. Linux only: elsewhere it does nothing.
 *
 * @param mark - the variable as it is in the environment, `NAME=value`.
 */
export async function killMarked(mark: string): Promise<void> {
  const giveUp = Date.now() + patienceMs;
  while (Date.now() < giveUp) {
    const found = await marked(mark);
    if (found.length === 0) return;
    for (const pid of found) kill(pid);
    await delay(5);
  }
}

async function marked(mark: string): Promise<number[]> {
  const names = await readdir("/proc").catch(() => []);
  const pids = names.map(Number).filter((pid) => Number.isInteger(pid));
  const found: number[] = [];
  // One after another, because code can start many processes with large environments.
  for (const pid of pids) if (await hasMark(pid, mark)) found.push(pid);
  return found;
}

/** A process that has ended and that nobody has waited for has no environment any more. */
async function hasMark(pid: number, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  return environment.split("\0").includes(mark);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
