import { InvalidInputError } from "@fenced/core";
import { normalizeWorkspacePath } from "../workspace/workspace-path.ts";
import { clampedTime } from "./modification-time.ts";
import type { TreeEntry, WorkspaceTree } from "./workspace-tree.ts";

/** Limits on the entries of a workspace; what code made is kept in memory. */
const [mostEntries, mostCharacters] = [500_000, 67_108_864];

/** Everything in a workspace, sorted by path. */
export async function listTree(tree: WorkspaceTree, signal: AbortSignal): Promise<TreeEntry[]> {
  const found: TreeEntry[] = [];
  let characters = 0;
  await tree.list((entry) => {
    signal.throwIfAborted();
    characters += entry.path.length + (entry.target?.length ?? 0);
    if (found.length >= mostEntries || characters > mostCharacters) throw tooMany();
    found.push({ ...entry, modifiedAt: clampedTime(entry.modifiedAt) });
  });
  const sorted = found.filter(({ path }) => isNormal(path)).toSorted(byPath);
  // A place that names a path twice is lying, and could have one link judged and another one kept.
  return sorted.filter(({ path }, index) => sorted[index - 1]?.path !== path);
}

function isNormal(path: string): boolean {
  try {
    return path !== "." && normalizeWorkspacePath(path) === path;
  } catch {
    return false;
  }
}

function tooMany(): InvalidInputError {
  return new InvalidInputError(
    `The workspace has too many files: more than ${mostEntries} entries, or ${mostCharacters} characters of paths`,
    { remedy: "Remove those that are not needed, with `files.remove()` or in a block, and try again." },
  );
}

/** Compares two paths, so that directories come before what is in them. */
export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : 1;
}
