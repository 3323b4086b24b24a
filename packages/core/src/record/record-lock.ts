import { randomUUID } from "node:crypto";
import { open, readFile, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";

/** How long to wait for another program, and how often to look, in milliseconds. Each holds the lock for one line. */
const [waitMs, lookMs] = [10_000, 20];
/** Longer ones were not written here. */
const longestLock = 1000;

/**
 * Calls `action` while no other program does so for the same file. The lock of a program that was killed is removed.
 *
 * @throws BackendUnavailableError if another program keeps the lock.
 */
export async function withLock<T>(file: string, action: () => Promise<T>): Promise<T> {
  const lock = `${file}.lock`;
  const mine = `${process.pid} ${hostname()} ${randomUUID()}`;
  const deadline = performance.now() + waitMs;
  while (!(await create(lock, mine))) {
    if (await isLeft(lock)) await removeLeft(lock);
    else if (performance.now() > deadline) throw isLocked(lock);
    else await sleep(lookMs);
  }
  try {
    return await action();
  } finally {
    await unlink(lock).catch(() => {});
  }
}

/** Two programs may find the same lock left at once, and one of them may have its own by the time that the other removes it. */
async function removeLeft(lock: string): Promise<void> {
  const removing = `${lock}.remove`;
  if (!(await create(removing, ""))) {
    await sleep(lookMs);
    // Only a program that was killed within these few calls leaves it.
    if (await isOld(removing)) throw isLocked(removing);
    return;
  }
  try {
    if (await isLeft(lock)) await unlink(lock).catch(() => {});
  } finally {
    await unlink(removing).catch(() => {});
  }
}

async function create(lock: string, content: string): Promise<boolean> {
  try {
    await using handle = await open(lock, "wx", 0o600);
    await handle.writeFile(content);
    return true;
  } catch (error) {
    if (hasErrorCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Whether the program that has the lock is gone. Unknown programs are taken to be there. */
async function isLeft(lock: string): Promise<boolean> {
  const content = await readFile(lock, "utf8").catch(() => undefined);
  // It was killed before it could say who it is.
  if (content === "") return isOld(lock);
  if (content === undefined) return false;
  const [, pid, host] = /^(\d+) (\S+) \S+$/.exec(content.slice(0, longestLock)) ?? [];
  return pid !== undefined && host === hostname() && !isRunning(Number(pid));
}

async function isOld(file: string): Promise<boolean> {
  await using handle = await open(file, "r").catch(() => undefined);
  return handle !== undefined && Date.now() - (await handle.stat()).mtimeMs > waitMs;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasErrorCode(error, "ESRCH");
  }
}

function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function isLocked(lock: string): BackendUnavailableError {
  return new BackendUnavailableError(`The record is in use: another program keeps the lock ${JSON.stringify(lock)}`, {
    remedy: "Wait until that program ends, or remove the file if it is gone.",
  });
}
