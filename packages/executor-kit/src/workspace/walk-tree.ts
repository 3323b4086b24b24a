import { rmdir, unlink } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { detachMounts, mountsBelow } from "./mounts.ts";
import { isNoDirectory, PinnedDirectory } from "./pinned-directory.ts";
import { errorCode } from "./workspace-errors.ts";

/** What to do with the directories of a tree. */
export interface TreeVisit {
  /**
   * Inspects a directory.
   *
   * @param below - its path below the top, with a trailing `/`; empty for the top itself.
   * @returns the names of its subdirectories to visit.
   */
  enter(directory: PinnedDirectory, below: string): Promise<string[]>;
  /** Opens `name` in `directory`, whose path is `below`; returns `undefined` to leave it out. */
  open(directory: PinnedDirectory, name: string, below: string): Promise<PinnedDirectory | undefined>;
  /** Called when everything below `name` in `directory` has been visited. */
  leave?(directory: PinnedDirectory, name: string): Promise<void>;
  /** When to give up, as a `performance.now()` time. */
  readonly deadline: number;
}

/**
 * A step from one directory to a subdirectory with this name and path, and what is still to be visited in the parent.
 */
interface Step {
  readonly name: string;
  readonly identity: string;
  readonly left: string[];
  readonly below: string;
}

/**
 * Visits `top` and the directories below it, in constant space and without ever following a link: opens each directory
 * through its parent's descriptor, and returns through `..` only if that leads back to where it came from. So a tree
 * may be as deep as the file system allows, and code that moves directories cannot lead the walk astray: it skips
 * whatever is no longer there.
 *
 * @throws BackendUnavailableError at the deadline, since code can keep adding to the tree.
 */
export async function walkTree(top: PinnedDirectory, visit: TreeVisit): Promise<void> {
  const way: Step[] = [];
  let here = top;
  try {
    let left = await visit.enter(top, "");
    for (;;) {
      if (performance.now() > visit.deadline) throw tooSlow();
      const name = left.pop();
      if (name !== undefined) {
        const above = way.at(-1)?.below ?? "";
        const next = await visit.open(here, name, above);
        if (!next) continue;
        const below = `${above}${name}/`;
        way.push({ name, identity: await here.identity(), left, below });
        here = await replace(here, next, top);
        left = await visit.enter(here, below);
        continue;
      }
      const step = way.pop();
      if (!step) return;
      const parent = await parentOf(here, step.identity, way, top);
      if (!parent) continue;
      here = await replace(here, parent, top);
      left = step.left;
      await visit.leave?.(here, step.name);
    }
  } finally {
    if (here !== top) await here[Symbol.asyncDispose]();
  }
}

async function replace(old: PinnedDirectory, next: PinnedDirectory, top: PinnedDirectory): Promise<PinnedDirectory> {
  if (old !== top && old !== next) await old[Symbol.asyncDispose]();
  return next;
}

/**
 * The directory with this identity, in which `directory` was found; `undefined` if it is no longer reachable in either
 * way.
 */
async function parentOf(
  directory: PinnedDirectory,
  identity: string,
  way: readonly Step[],
  top: PinnedDirectory,
): Promise<PinnedDirectory | undefined> {
  if (way.length === 0) return top;
  const above = await directory.parent().catch(() => undefined);
  if (above && (await above.identity()) === identity) return above;
  await above?.[Symbol.asyncDispose]();
  return descend(top, way, identity);
}

async function descend(
  top: PinnedDirectory,
  way: readonly Step[],
  identity: string,
): Promise<PinnedDirectory | undefined> {
  let here = top;
  for (const { name } of way) {
    const next = await here.child(name).catch(() => undefined);
    if (here !== top) await here[Symbol.asyncDispose]();
    if (!next) return undefined;
    here = next;
  }
  if ((await here.identity()) === identity) return here;
  await here[Symbol.asyncDispose]();
  return undefined;
}

function tooSlow(): BackendUnavailableError {
  return new BackendUnavailableError("Walking the directories took too long", {
    remedy: "A program may keep adding to them: end it with restart() or stop(), then try again.",
  });
}

/** Time limit for removing a tree in milliseconds, since code may keep adding to it. */
const removalMs = 120_000;
/** How often to empty a directory again after code has added to it. */
const mostRounds = 20;
/** Number of files to remove at the same time. */
const batchSize = 64;
/** Maximum number of subdirectories of one directory to keep in memory; the next round finds the others. */
const mostNames = 100_000;

/**
 * Removes an entry of a directory and everything in it, at any depth. Never leaves the directory, whatever links code
 * puts there meanwhile, and opens no files, so that named pipes cannot block it.
 *
 * @throws the system's error, such as `ENOENT`; `EBUSY` if something is mounted there or below: nothing is removed then.
 * @throws BackendUnavailableError if code adds to it faster than it is removed.
 */
export async function removeEntry(directory: PinnedDirectory, name: string): Promise<void> {
  const deadline = performance.now() + removalMs;
  const [mounted] = await mountsBelow(directory, name);
  if (mounted !== undefined) throw Object.assign(new Error(`${mounted} is mounted`), { code: "EBUSY" });
  if ((await removeFile(directory, name)) === "gone") throw Object.assign(new Error(`no ${name}`), { code: "ENOENT" });
  for (let round = 0; round < mostRounds; round += 1) {
    const child = await openToRemove(directory, name);
    if (child) {
      try {
        await walkTree(child, { enter: removeFiles, open: openToRemove, leave: removeDirectory, deadline });
      } finally {
        await child[Symbol.asyncDispose]();
      }
      await removeDirectory(directory, name);
    }
    if ((await removeFile(directory, name)) !== "directory") return;
  }
  throw new BackendUnavailableError(`${JSON.stringify(name)} could not be removed: code keeps adding files to it`, {
    remedy: "End the program that does so, with restart() or stop(), then try again.",
  });
}

/**
 * Removes a file or a directory of this host, if it exists; see `removeEntry`. Unmounts what is mounted there or below.
 *
 * @param place - an absolute path; code must not be able to change anything else in its parent directory.
 */
export async function removeTree(place: string): Promise<void> {
  try {
    await using directory = await PinnedDirectory.open(path.dirname(place));
    await detachMounts(directory, path.basename(place));
    await removeEntry(directory, path.basename(place));
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** Removes everything but directories; returns their names. */
async function removeFiles(directory: PinnedDirectory): Promise<string[]> {
  const directories: string[] = [];
  let batch: Promise<void>[] = [];
  const remove = async (name: string): Promise<void> => {
    if ((await removeFile(directory, name)) === "directory") directories.push(name);
  };
  for await (const { name, isDirectory } of directory.entries()) {
    if (isDirectory) directories.push(name);
    else if (batch.push(remove(name)) === batchSize) batch = await settled(batch);
    if (directories.length >= mostNames) break;
  }
  await settled(batch);
  return directories;
}

async function settled(batch: readonly Promise<void>[]): Promise<[]> {
  // Wait for all of them; otherwise, a failure would leave others running.
  for (const outcome of await Promise.allSettled(batch)) if (outcome.status === "rejected") throw outcome.reason;
  return [];
}

async function removeFile(directory: PinnedDirectory, name: string): Promise<"removed" | "gone" | "directory"> {
  try {
    await allowed(directory, () => unlink(directory.entry(name)));
    return "removed";
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT") return "gone";
    // Deno removes an empty directory like a file, and says this of others.
    if (code === "EISDIR" || code === "ENOTEMPTY") return "directory";
    if (code === "EPERM" && process.platform !== "linux") return "directory";
    throw error;
  }
}

/** Leaves a directory that is not empty, or that code replaced with something else, to the next round. */
async function removeDirectory(directory: PinnedDirectory, name: string): Promise<void> {
  try {
    await allowed(directory, () => rmdir(directory.entry(name)));
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(errorCode(error) ?? "")) throw error;
  }
}

async function openToRemove(directory: PinnedDirectory, name: string): Promise<PinnedDirectory | undefined> {
  try {
    return await directory.child(name).catch(async (error: unknown) => {
      if (errorCode(error) !== "EACCES") throw error;
      await directory.makeChildWritable(name);
      return directory.child(name);
    });
  } catch (error) {
    if (isNoDirectory(error)) return undefined;
    throw error;
  }
}

/** Directories may lack the permissions needed to remove their entries, such as those of Go's module cache. */
async function allowed(directory: PinnedDirectory, change: () => Promise<void>): Promise<void> {
  await change().catch(async (error: unknown) => {
    if (errorCode(error) !== "EACCES") throw error;
    await directory.makeWritable();
    await change();
  });
}
