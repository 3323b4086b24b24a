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
export async function makeDirectories(directory: string, { mode }: MakeDirectoriesOptions = {}): Promise<boolean> {
  const steps = stepsTo(directory);
  let step = steps.next();
  while (step.done !== true) {
    const { value } = step;
    step = steps.next(
      await mkdir(value, { mode }).then(
        () => undefined,
        async (error: unknown) => ({ error, isThere: await isDirectory(value) }),
      ),
    );
  }
  return step.value;
}

/** The same, at once. */
export function makeDirectoriesSync(directory: string, { mode }: MakeDirectoriesOptions = {}): boolean {
  const steps = stepsTo(directory);
  let step = steps.next();
  while (step.done !== true) step = steps.next(tried(step.value, mode));
  return step.value;
}

/** Why a directory could not be made. */
interface NotMade {
  readonly error: unknown;
  /** There is a directory already. */
  readonly isThere: boolean;
}

function tried(directory: string, mode: number | undefined): NotMade | undefined {
  try {
    mkdirSync(directory, { mode });
    return undefined;
  } catch (error) {
    return { error, isThere: isDirectorySync(directory) };
  }
}

function isDirectorySync(name: string): boolean {
  try {
    return statSync(name, { bigint: true }).isDirectory();
  } catch {
    return false;
  }
}

async function isDirectory(name: string): Promise<boolean> {
  try {
    return (await stat(name)).isDirectory();
  } catch {
    return false;
  }
}

/** The directories to make, one after another: upwards to one that is there, and then down again. */
function* stepsTo(directory: string): Generator<string, boolean, NotMade | undefined> {
  const missing: string[] = [];
  for (let each = path.resolve(directory); ; each = path.dirname(each)) {
    const notMade = yield each;
    if (!notMade) break;
    if (notMade.isThere) {
      if (missing.length === 0) return false;
      break;
    }
    if (!isMissing(notMade.error) || path.dirname(each) === each) throw notMade.error;
    missing.unshift(each);
  }
  for (const each of missing) {
    const notMade = yield each;
    // Somebody else may have made it meanwhile.
    if (notMade && !notMade.isThere) throw notMade.error;
  }
  return true;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
