import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { hasVariable, listProcesses, type ProcessInfo } from "./process-table.ts";

/** Which processes belong together. */
export interface ProcessFamily {
  /**
   * The process that was started, as leader of a session of its own (`detached: true`); its descendants belong to it.
   * It must not have been waited for yet, or its number may be somebody else's.
   */
  readonly root?: number;
  /** Processes that were started like that and have ended; what is left of their sessions belongs to the family. */
  readonly endedRoots?: Iterable<number>;
  /** An environment variable that only this family has. On Linux it finds those that left group and parents. */
  readonly mark: { readonly name: string; readonly value: string };
}

/** How long the system may take to end processes that were killed, in milliseconds. */
const deadline = 10_000;
/** A family that still grows after so many looks (a fork bomb over many sessions) is killed as far as it is known. */
const mostLooks = 20;

/**
 * Kills a family of processes: the root, its group and session, all descendants, and, on Linux, whoever carries the
 * mark. It is stopped first and killed then, since an orphan that dropped the mark could not be told any more. Looks
 * again until none is left. Windows: the tree, by `taskkill`.
 */
export async function killProcesses(family: ProcessFamily): Promise<void> {
  if (process.platform === "win32") {
    await killTree(family.root);
    return;
  }
  try {
    for (const pid of await freeze(family)) send(pid, "SIGKILL");
  } finally {
    // Needs no look at the table, which fails when this process has no descriptor left.
    if (family.root !== undefined) send(-family.root, "SIGKILL");
  }
  const giveUp = performance.now() + deadline;
  for (let wait = 1; performance.now() < giveUp; wait = Math.min(wait * 2, 50)) {
    const left = membersOf(family, await listProcesses());
    if (left.length === 0) return;
    for (const pid of left) send(pid, "SIGKILL");
    await sleep(wait);
  }
}

/** Stops the family, member by member, until no look finds a new one; what is stopped cannot start another. */
async function freeze(family: ProcessFamily): Promise<ReadonlySet<number>> {
  const frozen = new Set<number>();
  if (family.root !== undefined) send(-family.root, "SIGSTOP");
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const found = membersOf(family, await listProcesses()).filter((pid) => !frozen.has(pid));
    if (found.length === 0) break;
    for (const pid of found) {
      send(pid, "SIGSTOP");
      frozen.add(pid);
    }
  }
  return frozen;
}

function membersOf({ root, endedRoots, mark }: ProcessFamily, all: readonly ProcessInfo[]): number[] {
  const members = new Set<number>();
  const sessions = new Set(endedRoots);
  // A leader that lives under the number of one that has ended is a stranger, and so is its session.
  for (const { pid } of all) sessions.delete(pid);
  if (root !== undefined) sessions.add(root);
  for (const each of all) {
    const ofSession = sessions.has(each.pid) || sessions.has(each.group) || sessions.has(each.session);
    if (ofSession || hasVariable(each.pid, mark.name, mark.value)) members.add(each.pid);
  }
  for (let size = -1; size !== members.size;) {
    size = members.size;
    for (const each of all) if (members.has(each.parent)) members.add(each.pid);
  }
  // A caller that carries the mark itself, because it runs inside a block, must not end itself.
  members.delete(process.pid);
  return [...members];
}

function send(pid: number, signal: "SIGSTOP" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone already, or belongs to somebody else.
  }
}

async function killTree(root: number | undefined): Promise<void> {
  if (root === undefined) return;
  // An exit code says only that some process was gone before.
  await promisify(execFile)("taskkill", ["/T", "/F", "/PID", String(root)]).catch(() => {});
}
