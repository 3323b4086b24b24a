import { setImmediate } from "node:timers/promises";
import type { RiskyFile, WorkspaceChanges } from "@fenced/core";
import { Links } from "../checkpoints/links.ts";
import type { FoundTree } from "../checkpoints/list-tree.ts";
import type { TreeEntry } from "../checkpoints/workspace-tree.ts";
import { riskOf, type Surroundings } from "./risky-files.ts";

/** Limits on each list of a result: code can make any number of files. */
const [mostPaths, mostCharacters, mostRisky] = [10_000, 1_048_576, 1000];

/** How long to work before others get their turn, in milliseconds: code can make half a million files. */
const turnMs = 10;

/**
 * Says how a workspace differs from what it was before.
 *
 * @param workspacePath - its absolute path, as programs see it, if that is known.
 */
export async function compareTrees(
  before: FoundTree,
  after: FoundTree,
  workspacePath: string | undefined,
): Promise<WorkspaceChanges> {
  // Without knowing all that was there, nothing is known to be new.
  if (before.isCut) return unknownChanges;
  const [created, changed, deleted] = [new Paths(), new Paths(), new Paths()];
  const there = new Map(before.entries.map((entry) => [entry.path, entry]));
  const [unseenBefore, unseenAfter] = [new Unseen(before.entries), new Unseen(after.entries)];
  const touched: TreeEntry[] = [];
  for await (const entry of inTurns(after.entries)) {
    const old = there.get(entry.path);
    there.delete(entry.path);
    if (entry.type === "unknown" || (old && isSame(old, entry))) continue;
    // It may be new, and should not be trusted, but nobody knows.
    const isUnclear = old ? old.type === "unknown" : unseenBefore.has(entry.path);
    if (!isUnclear) (old ? changed : created).add(entry.path);
    touched.push(entry);
  }
  if (!after.isCut) for (const path of there.keys()) if (!unseenAfter.has(path)) deleted.add(path);
  const risky = await riskyAmong(touched, after.entries, workspacePath);
  const isCut =
    after.isCut ||
    [created, changed, deleted].some((paths) => paths.isCut) ||
    risky.length > mostRisky ||
    [...before.entries, ...after.entries].some((entry) => !isKnown(entry));
  return {
    created: created.all,
    changed: changed.all,
    deleted: deleted.all,
    risky: risky.slice(0, mostRisky),
    ...(isCut && { truncated: true }),
  };
}

/** The changes of a workspace that could not be looked at. */
export const unknownChanges: WorkspaceChanges = { created: [], changed: [], deleted: [], risky: [], truncated: true };

/** Whether a later change of it, or of what is in it, could be seen. */
function isKnown({ type, identity }: TreeEntry): boolean {
  return type === "directory" || (type !== "unknown" && identity !== undefined);
}

function isSame(one: TreeEntry, other: TreeEntry): boolean {
  if (one.type !== other.type || one.mode !== other.mode) return false;
  // The rest of a directory changes with what is in it, which is listed itself.
  if (one.type === "directory") return true;
  return (
    one.identity === other.identity &&
    one.modifiedAt === other.modifiedAt &&
    one.target === other.target &&
    one.isPrivileged === other.isPrivileged
  );
}

/** At most one more than a result lists. */
async function riskyAmong(
  touched: readonly TreeEntry[],
  all: readonly TreeEntry[],
  workspacePath: string | undefined,
): Promise<RiskyFile[]> {
  const paths = new Set(all.map(({ path }) => path.toLowerCase()));
  const links = new Links(
    all.flatMap(({ type, path, target }) => (type === "link" && target !== undefined ? [{ path, target }] : [])),
    workspacePath,
  );
  const surroundings: Surroundings = {
    exists: (path) => paths.has(path),
    leadsOut: (path) => links.targetInside(path) === undefined,
  };
  const risky: RiskyFile[] = [];
  for await (const entry of inTurns(touched)) {
    const reason = riskOf(entry, surroundings);
    if (reason !== undefined) risky.push({ path: entry.path, reason });
    if (risky.length > mostRisky) break;
  }
  return risky;
}

async function* inTurns<T>(all: readonly T[]): AsyncGenerator<T, void, void> {
  let turnEnds = performance.now() + turnMs;
  for (const each of all) {
    if (performance.now() > turnEnds) {
      await setImmediate();
      turnEnds = performance.now() + turnMs;
    }
    yield each;
  }
}

/** What is in directories that could not be looked at. */
class Unseen {
  /** In order. None of them begins with another one, since nothing below them was listed. */
  readonly #directories: readonly string[];

  constructor(entries: readonly TreeEntry[]) {
    this.#directories = entries.flatMap(({ type, path }) => (type === "unknown" ? [`${path}/`] : [])).toSorted();
  }

  has(path: string): boolean {
    let [from, to] = [0, this.#directories.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#directories[middle] ?? "") > path) to = middle;
      else from = middle + 1;
    }
    const last = this.#directories[from - 1];
    return last !== undefined && path.startsWith(last);
  }
}

/** Paths, as many as a result keeps. */
class Paths {
  readonly all: string[] = [];
  isCut = false;
  #characters = 0;

  add(path: string): void {
    this.#characters += path.length;
    if (this.all.length >= mostPaths || this.#characters > mostCharacters) this.isCut = true;
    else this.all.push(path);
  }
}
