import type { RiskyFile, WorkspaceChanges } from "@fenced/core";
import { Links } from "../checkpoints/links.ts";
import type { FoundTree } from "../checkpoints/list-tree.ts";
import type { TreeEntry } from "../checkpoints/workspace-tree.ts";
import { riskOf } from "./risky-files.ts";

/** Limits on each list of a result: code can make any number of files. */
const [mostPaths, mostCharacters, mostRisky] = [10_000, 1_048_576, 1000];

/**
 * Says how a workspace differs from what it was before.
 *
 * @param workspacePath - its absolute path, as programs see it, if that is known.
 */
export function compareTrees(before: FoundTree, after: FoundTree, workspacePath: string | undefined): WorkspaceChanges {
  // Without knowing all that was there, nothing is known to be new.
  if (before.isCut) return unknownChanges;
  const [created, changed, deleted] = [new Paths(), new Paths(), new Paths()];
  const there = new Map(before.entries.map((entry) => [entry.path, entry]));
  const touched: TreeEntry[] = [];
  for (const entry of after.entries) {
    const old = there.get(entry.path);
    there.delete(entry.path);
    if (entry.type === "unknown" || (old && isSame(old, entry))) continue;
    (old ? changed : created).add(entry.path);
    touched.push(entry);
  }
  if (!after.isCut) for (const path of there.keys()) deleted.add(path);
  const risky = riskyAmong(touched, after.entries, workspacePath);
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

function riskyAmong(
  touched: readonly TreeEntry[],
  all: readonly TreeEntry[],
  workspacePath: string | undefined,
): RiskyFile[] {
  const paths = new Set(all.map(({ path }) => path));
  const links = new Links(
    all.flatMap(({ type, path, target }) => (type === "link" && target !== undefined ? [{ path, target }] : [])),
    workspacePath,
  );
  return touched.flatMap((entry) => {
    const reason = riskOf(entry, {
      exists: (path) => paths.has(path),
      leadsOut: (path) => links.targetInside(path) === undefined,
    });
    return reason === undefined ? [] : [{ path: entry.path, reason }];
  });
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
