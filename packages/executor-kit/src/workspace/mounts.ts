import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { removalFunctions } from "../processes/removal-functions.ts";
import { pathOfLatin1 } from "./path-bytes.ts";
import type { PinnedDirectory } from "./pinned-directory.ts";

/**
 * What is mounted at an entry of a directory or below it, outermost first, as absolute paths. Code that runs as root can
 * mount any directory of the machine, even `/`, and a removal must not go through that. Empty on systems other than Linux.
 */
export async function mountsBelow(directory: PinnedDirectory, name: string): Promise<string[]> {
  if (process.platform !== "linux") return [];
  // The path of a very deep directory is too long for the system, which mounts nothing there either.
  const above = await directory.currentPath().catch(() => undefined);
  if (above === undefined) return [];
  const place = `${above === "/" ? "" : above}/${name}`;
  const table = await readFile("/proc/self/mountinfo", "latin1").catch(() => "");
  return table
    .split("\n")
    .map((line) => mountedAt(line))
    .filter((each) => each === place || each.startsWith(`${place}/`));
}

/**
 * Unmounts all of that, where this process may and nothing outside is unmounted with it. Never rejects: see what is left
 * with `mountsBelow`.
 */
export async function detachMounts(directory: PinnedDirectory, name: string): Promise<void> {
  if ((await mountsBelow(directory, name)).length === 0) return;
  const above = await directory.currentPath().catch(() => undefined);
  if (above === undefined) return;
  // A shell passes on names that are not UTF-8, which arguments from here cannot contain.
  const words = ["-c", `${removalFunctions}\ndetached "$1"`, "fenced-removal", path.join(above, name)];
  await promisify(execFile)("/bin/sh", words, { cwd: "/", env: { ...process.env, LC_ALL: "C" } }).catch(() => {});
}

/** The path in a line of the table, in which a space, for example, is `\\040`. */
function mountedAt(line: string): string {
  const [, , , , escaped = ""] = line.split(" ");
  return pathOfLatin1(
    escaped.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 8))),
  );
}
