import { InvalidInputError } from "@fenced/core";
import { normalizeWorkspacePath } from "../workspace/workspace-path.ts";
import { clampedTime } from "./modification-time.ts";
import type { TreeEntry, WorkspaceTree } from "./workspace-tree.ts";

/** Limits on the entries of a workspace; what code made is kept in memory. */
const [mostEntries, mostCharacters] = [500_000, 67_108_864];

/** What was found in a workspace. */
export interface FoundTree {
  /** Sorted by path. */
  readonly entries: readonly TreeEntry[];
  /** There are more. */
  readonly isCut: boolean;
}

/**
 * Everything in a workspace, sorted by path.
 *
 * @throws InvalidInputError if there is too much in it.
 */
export async function listTree(tree: WorkspaceTree, signal: AbortSignal): Promise<readonly TreeEntry[]> {
  const { entries, isCut } = await findTree(tree, { signal, most: mostEntries });
  if (isCut) throw tooMany();
  return entries;
}

/** What is in a workspace, up to `most` entries. */
export async function findTree(
  tree: WorkspaceTree,
  { signal, most }: { readonly signal: AbortSignal; readonly most: number },
): Promise<FoundTree> {
  const found: TreeEntry[] = [];
  let characters = 0;
  let isCut = false;
  const add = (entry: TreeEntry): void => {
    signal.throwIfAborted();
    characters += entry.path.length + (entry.target?.length ?? 0);
    isCut ||= found.length >= most || characters > mostCharacters;
    if (isCut) throw new Error("There are too many entries");
    found.push({ ...entry, modifiedAt: clampedTime(entry.modifiedAt) });
  };
  await tree.list(add).catch((error: unknown) => {
    if (!isCut) throw error;
  });
  const sorted = found.filter(({ path }) => isNormal(path)).toSorted(byPathUnknownFirst);
  // A directory that cannot be opened is also listed as unknown. A place that names any other path twice is lying, and could have one
  // link judged and another one kept.
  return { entries: sorted.filter(({ path }, index) => sorted[index - 1]?.path !== path), isCut };
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

function byPathUnknownFirst(one: TreeEntry, other: TreeEntry): number {
  if (one.path !== other.path) return byPath(one, other);
  return Number(other.type === "unknown") - Number(one.type === "unknown");
}

/** Compares two paths, so that directories come before what is in them. */
export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : 1;
}
