import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const lookMs = 200;
const pageBytes = 4096;

/**
 * Waits until a process uses more memory than allowed. The interpreter's own memory has a separate limit; this covers
 * the rest of the process, which code can make grow. Linux only: elsewhere it waits for the signal.
 */
export async function watchMemory(pid: number, maxBytes: number, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if ((await residentBytes(pid)) > maxBytes) return true;
    await sleep(lookMs, undefined, { signal, ref: false }).catch(() => {});
  }
  return false;
}

async function residentBytes(pid: number): Promise<number> {
  // If the file is missing, the process has ended.
  const text = await readFile(`/proc/${pid}/statm`, "utf8").catch(() => "");
  return Number(text.split(" ")[1] ?? 0) * pageBytes;
}
