import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { homeDirectory } from "@fenced/core/runtime";

/** Windows has no such flag. */
const noFollow = process.platform === "win32" ? 0 : fs.constants.O_NOFOLLOW;
const noRoom = new Set(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM"]);

/** A file in the cache, from which interpreters start. */
export interface KeptFile {
  readonly directory: string;
  readonly name: string;
  /** A larger file is not used. */
  readonly mostBytes: number;
}

/** The user's cache directory. */
export function cacheDirectory(): string {
  const home = homeDirectory();
  if (process.platform === "win32") return path.join(process.env.LOCALAPPDATA ?? home, "fenced", "cache");
  if (process.platform === "darwin") return path.join(home, "Library", "Caches", "fenced");
  const configured = process.env.XDG_CACHE_HOME;
  return path.join(
    configured !== undefined && path.isAbsolute(configured) ? configured : path.join(home, ".cache"),
    "fenced",
  );
}

/** Opens a cached file if nobody else can have written it; returns `undefined` otherwise, or if it does not exist. */
export function openKept({ directory, name, mostBytes }: KeptFile): number | undefined {
  if (!makeTrustedDirectory(directory)) return undefined;
  let descriptor: number | undefined;
  try {
    descriptor = fs.openSync(path.join(directory, name), fs.constants.O_RDONLY | noFollow);
    const entry = fs.fstatSync(descriptor);
    if (entry.isFile() && entry.nlink === 1 && entry.size < mostBytes && isOurs(entry, { shared: false })) {
      return descriptor;
    }
    fs.closeSync(descriptor);
  } catch {
    if (descriptor !== undefined) fs.closeSync(descriptor);
  }
  return undefined;
}

/** Writes content and returns the name under which to keep it; `undefined`: it is not needed. */
type Write = (descriptor: number) => Promise<string | undefined> | string | undefined;

/**
 * Writes a file to the cache, or an unnamed file if the cache has no room or others may write to it.
 *
 * @param write - called again if there was no room.
 * @param kept - how many files with the prefix to keep: the most recently used ones.
 * @returns a descriptor for reading.
 */
export async function makeKept(
  directory: string,
  write: Write,
  kept?: { readonly prefix: string; readonly most: number },
): Promise<number | undefined> {
  if (!makeTrustedDirectory(directory)) return writeUnnamed(write);
  const temporary = path.join(directory, `.${randomUUID()}`);
  try {
    const { name, descriptor } = await writeFile(temporary, write);
    if (name === undefined) fs.rmSync(temporary, { force: true });
    else fs.renameSync(temporary, path.join(directory, name));
    if (kept) removeOldest(directory, kept);
    return descriptor;
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    if (error instanceof Error && "code" in error && noRoom.has(String(error.code))) return writeUnnamed(write);
    throw error;
  }
}

function removeOldest(directory: string, { prefix, most }: { readonly prefix: string; readonly most: number }): void {
  const names = fs.readdirSync(directory).filter((name) => name.startsWith(prefix));
  const files = names.map((name) => {
    const file = path.join(directory, name);
    return { file, at: fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  for (const { file } of files.toSorted((one, other) => other.at - one.at).slice(most)) {
    fs.rmSync(file, { force: true });
  }
}

async function writeUnnamed(write: Write): Promise<number | undefined> {
  const directory = fs.mkdtempSync(path.join(tmpdir(), "fenced-cache-"));
  try {
    return (await writeFile(path.join(directory, "file"), write)).descriptor;
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns a second descriptor, which is read-only. */
async function writeFile(
  file: string,
  write: Write,
): Promise<{ name: string | undefined; descriptor: number | undefined }> {
  const descriptor = fs.openSync(file, "wx", 0o600);
  try {
    const name = await write(descriptor);
    return { name, descriptor: name === undefined ? undefined : fs.openSync(file, fs.constants.O_RDONLY | noFollow) };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Creates the directory. Returns whether only its owner and root can have written to it. */
function makeTrustedDirectory(directory: string): boolean {
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (let each = directory; ; each = path.dirname(each)) {
      const sticky = (fs.lstatSync(each).mode & 0o1000) !== 0;
      // In a directory like /tmp, others can add names, but cannot replace ours below it.
      if (!isOurs(fs.lstatSync(each), { shared: sticky && each !== directory })) return false;
      if (each === path.dirname(each)) return true;
    }
  } catch {
    return false;
  }
}

function isOurs(entry: fs.Stats, { shared }: { readonly shared: boolean }): boolean {
  if (process.platform === "win32") return true;
  const owned = entry.uid === process.getuid?.() || entry.uid === 0;
  return owned && !entry.isSymbolicLink() && (shared || (entry.mode & 0o022) === 0);
}
