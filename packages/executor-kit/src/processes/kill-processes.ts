import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasVariable, listProcesses, type ProcessInfo } from "./process-table.ts";

/** Which processes belong together. */
export interface ProcessFamily {
  /**
   * A process started as the leader of its own session (`detached: true`); its descendants belong to the family. It
   * must not have been reaped yet, or another process may have its id.
   */
  readonly root?: number;
  /** Processes that were started the same way and have ended; what is left of their sessions belongs to the family. */
  readonly endedRoots?: Iterable<number>;
  /**
   * An environment variable that only this family has. On Linux, it identifies members that have left both the group
   * and their parents.
   */
  readonly mark: { readonly name: string; readonly value: string };
}

/** Time limit for the system to end killed processes in milliseconds. */
const deadline = 10_000;
/**
 * Time limit for members to stop in milliseconds. One that is waiting for the kernel, or for a stopped process as after
 * `vfork`, does not stop, but does not start others meanwhile either.
 */
const stopDeadline = 1000;
/**
 * After this many passes, the known members of a family that is still growing (a fork bomb across many sessions) are
 * killed.
 */
const mostLooks = 20;

/**
 * Kills a family of processes: the root, its group and session, all descendants and, on Linux, every process with the
 * mark. Stops all of them before it kills any: a process without the mark could no longer be recognized once its
 * parents are gone. Repeats until none is left, for at most 10 s. On Windows it kills the tree with `taskkill`.
 */
export async function killProcesses(family: ProcessFamily): Promise<void> {
  if (process.platform === "win32") {
    await killTree(family.root);
    return;
  }
  let killed: ReadonlySet<number> = new Set();
  try {
    killed = await freeze(family);
    for (const pid of killed) send(pid, "SIGKILL");
  } finally {
    // Works without the process table, which cannot be read if this process has run out of descriptors.
    if (family.root !== undefined) send(-family.root, "SIGKILL");
  }
  const giveUp = performance.now() + deadline;
  for (let wait = 1; performance.now() < giveUp; wait = Math.min(wait * 2, 50)) {
    const all = await listProcesses();
    const left = membersOf(family, all);
    // Once its parents are gone, a process without the mark is known only by its id, which may now belong to another
    // process: wait for it, but do not kill it again.
    if (left.length === 0 && !all.some(({ pid }) => killed.has(pid))) return;
    for (const pid of left) send(pid, "SIGKILL");
    await sleep(wait);
  }
}

/**
 * Stops the family member by member. A stopped process cannot start another, but one that was only told to stop may be in the
 * middle of that. Returns all members.
 *
 * @param list - reads the process table.
 */
export async function freeze(
  family: ProcessFamily,
  list: typeof listProcesses = listProcesses,
): Promise<ReadonlySet<number>> {
  const frozen = new Set<number>();
  if (family.root !== undefined) send(-family.root, "SIGSTOP");
  const giveUp = performance.now() + stopDeadline;
  // The table is not read in one instant: a process that is seen as stopped may have started another one after the names were read,
  // which only the next pass sees.
  for (let looks = 0, wait = 1, quiet = 0; looks < mostLooks;) {
    const all = await list();
    const members = new Set(membersOf(family, all));
    const running = all.filter(({ pid, stopped }) => members.has(pid) && !stopped);
    const known = frozen.size;
    for (const pid of members) frozen.add(pid);
    quiet = running.length === 0 ? quiet + 1 : 0;
    if (quiet === 2) break;
    if (quiet === 1) continue;
    for (const { pid } of running) send(pid, "SIGSTOP");
    if (frozen.size > known) looks += 1;
    else if (performance.now() > giveUp) break;
    else await sleep((wait = Math.min(wait * 2, 50)));
  }
  return frozen;
}

/** The processes of a family, except this one. */
export function membersOf({ root, endedRoots, mark }: ProcessFamily, all: readonly ProcessInfo[]): number[] {
  const members = new Set<number>();
  const sessions = new Set(endedRoots);
  // A process that has the id of an ended leader is unrelated, and so is its session.
  for (const { pid } of all) sessions.delete(pid);
  if (root !== undefined) sessions.add(root);
  // Whatever was running before this process cannot have been started by its blocks. Most of a system's processes were, and looking
  // for a mark in them takes most of the time.
  const earliest = all.find(({ pid }) => pid === process.pid)?.started ?? 0;
  for (const each of all) {
    const ofSession = sessions.has(each.pid) || sessions.has(each.group) || sessions.has(each.session);
    const marked = each.started >= earliest && hasVariable(each.pid, mark.name, mark.value);
    if (ofSession || marked) members.add(each.pid);
  }
  for (let size = -1; size !== members.size;) {
    size = members.size;
    for (const each of all) if (members.has(each.parent)) members.add(each.pid);
  }
  // A caller that itself runs in a block has the mark, and must not be killed.
  members.delete(process.pid);
  return [...members];
}

function send(pid: number, signal: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is already gone, or belongs to another user.
  }
}

async function killTree(root: number | undefined): Promise<void> {
  if (root === undefined) return;
  // The exit code says only that some process was already gone.
  await promisify(execFile)("taskkill", ["/T", "/F", "/PID", String(root)]).catch(() => {});
}
