// Always with `bigint`, as the lint rule requires.
// oxlint-disable-next-line no-restricted-imports
import { mkdirSync, statSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import path from "node:path";

/** How to make missing directories. */
export interface MakeDirectoriesOptions {
  /** Permissions of those that are made. Default: 0o777, without what the process's mask takes away. */
  readonly mode?: number;
}

/**
 * Creates a directory on this host, and those above it that are missing. With `recursive`, Node's own `mkdir` would never end
 * where a file system answers that a parent is missing although it is there, as /proc does.
 *
 * @returns whether it was missing.
 * @throws Error of the file system, such as ENOTDIR or EACCES.
 */
export async function makeDirectories(directory: string, options: MakeDirectoriesOptions = {}): Promise<boolean> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      await mkdir(directory, { mode: options.mode });
      return true;
    } catch (error) {
      const isThere = await stat(directory).then(
        (found) => found.isDirectory(),
        () => false,
      );
      if (isThere) return false;
      if (!isFirst || !lacksParent(error, directory)) throw error;
      await makeDirectories(path.dirname(directory), options);
    }
  }
}

/** The same, at once. */
export function makeDirectoriesSync(directory: string, options: MakeDirectoriesOptions = {}): boolean {
  for (let isFirst = true; ; isFirst = false) {
    try {
      mkdirSync(directory, { mode: options.mode });
      return true;
    } catch (error) {
      if (isDirectorySync(directory)) return false;
      if (!isFirst || !lacksParent(error, directory)) throw error;
      makeDirectoriesSync(path.dirname(directory), options);
    }
  }
}

function isDirectorySync(name: string): boolean {
  try {
    return statSync(name, { bigint: true }).isDirectory();
  } catch {
    return false;
  }
}

function lacksParent(error: unknown, directory: string): boolean {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  return isMissing && path.dirname(directory) !== directory;
}
