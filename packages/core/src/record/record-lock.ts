import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readFile, unlink } from "node:fs/promises";
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
  const mine = `${process.pid} ${hostname()} ${(await startOf(process.pid)) ?? 0} ${randomUUID()}`;
  const deadline = performance.now() + waitMs;
  while (!(await create(lock, mine))) {
    if (performance.now() > deadline) throw isLocked(lock);
    if (await isLeft(lock)) await removeLeft(lock);
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
    await handle.writeFile(content).catch(async (error: unknown) => {
      // The disk is full. Others would take it for the lock of a program that goes on.
      await unlink(lock).catch(() => {});
      throw error;
    });
    return true;
  } catch (error) {
    if (hasErrorCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Whether the program that has the lock is gone. Unknown programs are taken to be there. */
async function isLeft(lock: string): Promise<boolean> {
  const content = await contentOf(lock).catch(() => undefined);
  // It was killed before it could say who it is.
  if (content === "") return isOld(lock);
  if (content === undefined) return false;
  const [, pid, host, start] = /^(\d+) (\S+)(?: (\d+))? \S+$/.exec(content) ?? [];
  if (pid === undefined || host !== hostname()) return false;
  if (!isRunning(Number(pid))) return true;
  // Another program may have got its number since, perhaps this one.
  const found = await startOf(Number(pid));
  return start !== undefined && start !== "0" && found !== undefined && found !== start;
}

/** The beginning of a lock; `undefined` if it is something else, such as a pipe, which would never end. */
async function contentOf(lock: string): Promise<string | undefined> {
  await using handle = await open(lock, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if (!(await handle.stat()).isFile()) return undefined;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(longestLock), 0, longestLock, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

async function isOld(file: string): Promise<boolean> {
  const stats = await lstat(file).catch(() => undefined);
  return stats !== undefined && Date.now() - stats.mtimeMs > waitMs;
}

/** When a program started, in ticks since the system did; `undefined` if that is not known. */
async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return undefined;
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // The program's name, in brackets, may contain anything.
  const found = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return found !== undefined && /^\d+$/.test(found) ? found : undefined;
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
