import { constants, type Stats } from "node:fs";
import { chmod, type FileHandle, lchown, lstat, mkdir, open, opendir, realpath, utimes } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { pathOfBytes, pathOfLatin1, systemPath } from "./path-bytes.ts";
import { asWorkspaceError, belowFile, errorCode, notAFile, workspaceReplaced } from "./workspace-errors.ts";
import { outsideWorkspace } from "./workspace-path.ts";

// Some of these are undefined on Windows, which does not affect the other flags.
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux's `O_PATH`, for which Node has no constant: opens even unreadable files. */
const pathOnly = 0o10_000_000;

/** An entry of a directory. */
interface DirectoryEntry {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly isFile: boolean;
}

/**
 * A directory that stays the same whatever code does to its path. On Linux, it is an open descriptor whose entries are
 * addressed through `/proc/self/fd`, like `openat` and `unlinkat` in other languages: links that code puts in the way
 * are not followed, and no path is too long. On other systems, it is a path, and code can replace the directory.
 */
export class PinnedDirectory implements AsyncDisposable {
  readonly #handle: FileHandle | undefined;
  readonly #path: string | Buffer;

  private constructor(place: string | Buffer, handle?: FileHandle) {
    this.#path = place;
    this.#handle = handle;
  }

  /**
   * Opens a directory without following its last part.
   *
   * @throws the system's error: `ENOTDIR` or `ELOOP` if it is a link or something else.
   */
  static async open(place: string | Buffer): Promise<PinnedDirectory> {
    if (process.platform === "linux") return new PinnedDirectory(place, await open(place, directoryFlags));
    if ((await lstat(place)).isDirectory()) return new PinnedDirectory(place);
    throw Object.assign(new Error(`${String(place)} is not a directory`), { code: "ENOTDIR" });
  }

  /**
   * The path through which to access an entry of this directory. The entry itself may be a link.
   *
   * @param name - see `pathOfBytes`.
   */
  entry(name: string): string | Buffer {
    if (this.#handle) return systemPath(`/proc/self/fd/${this.#handle.fd}/${name}`);
    return systemPath(path.join(typeof this.#path === "string" ? this.#path : pathOfBytes(this.#path), name));
  }

  /** The entries of this directory, with names as `pathOfBytes` makes them. */
  async *entries(): AsyncGenerator<DirectoryEntry, void, void> {
    // A name that is not UTF-8 would be lost in the default encoding.
    for await (const entry of await opendir(this.entry("."), { bufferSize: 256, encoding: "latin1" })) {
      yield { name: pathOfLatin1(entry.name), isDirectory: entry.isDirectory(), isFile: entry.isFile() };
    }
  }

  /** Opens a directory in this one. */
  async child(name: string): Promise<PinnedDirectory> {
    return PinnedDirectory.open(this.entry(name));
  }

  /** Opens the directory that now contains this one, which may differ from the one that it was opened from. */
  async parent(): Promise<PinnedDirectory> {
    return PinnedDirectory.open(this.entry(".."));
  }

  /** Distinguishes this directory from all others that exist. */
  async identity(): Promise<string> {
    const { dev, ino } = this.#handle
      ? await this.#handle.stat({ bigint: true })
      : await lstat(this.#path, { bigint: true });
    return `${dev}:${ino}`;
  }

  /** Where it is now, without symbolic links; see `pathOfBytes`. */
  async currentPath(): Promise<string> {
    return pathOfLatin1(await realpath(this.#handle ? `/proc/self/fd/${this.#handle.fd}` : this.#path, "latin1"));
  }

  async stat(): Promise<Stats> {
    return this.#handle ? this.#handle.stat() : lstat(this.#path);
  }

  async giveTo({ uid, gid }: { readonly uid: number; readonly gid: number }): Promise<void> {
    await (this.#handle ? this.#handle.chown(uid, gid) : lchown(this.#path, uid, gid));
  }

  /** Sets the directory's permissions, and the time of its last modification in milliseconds since 1970. */
  async setStatus({ mode, modifiedAt }: { readonly mode: number; readonly modifiedAt: number }): Promise<void> {
    const seconds = modifiedAt / 1000;
    if (this.#handle) {
      await this.#handle.utimes(seconds, seconds);
      await this.#handle.chmod(mode);
    } else {
      await utimes(this.#path, seconds, seconds);
      await chmod(this.#path, mode);
    }
  }

  /** Gives this process's user write permission for the directory. */
  async makeWritable(): Promise<void> {
    await (this.#handle ? this.#handle.chmod(0o700) : chmod(this.#path, 0o700));
  }

  /** Does the same for a directory in this one, which may not even be readable. */
  async makeChildWritable(name: string): Promise<void> {
    if (!this.#handle) return chmod(this.entry(name), 0o700);
    const handle = await open(this.entry(name), pathOnly | directoryFlags);
    try {
      await chmod(`/proc/self/fd/${handle.fd}`, 0o700);
    } finally {
      await handle.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }
}

/** True if a directory could not be opened because it is gone, or something else has replaced it. */
export function isNoDirectory(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP", "EMLINK"].includes(errorCode(error) ?? "");
}

/** The owner of a file. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

/** A workspace's directory on this host. */
export interface WorkspaceRoot {
  readonly path: string;
  /** What `PinnedDirectory.identity` said of it; if something else has its path now, nothing is opened. */
  readonly identity?: string;
}

/** How to open a path below a workspace. */
export interface OpenRequest {
  /** The path as the caller gave it, for errors. */
  readonly given: string;
  /** Create missing directories on the way. */
  readonly create: boolean;
  /** The owner of what is created. */
  readonly owner?: FileOwner;
}

/**
 * Opens the directory at `parts` below `root`; follows symbolic links as long as they stay inside.
 *
 * @throws WorkspacePathError if a symbolic link leads out of `root`.
 * @throws FileNotFoundError if it does not exist and `create` is false.
 */
export async function openDirectory(
  root: WorkspaceRoot,
  parts: readonly string[],
  request: OpenRequest,
): Promise<PinnedDirectory> {
  return openInside(root, parts, request, (realParts) => descend(root, realParts, request));
}

/**
 * Opens a regular file at `parts` below `root`, like `openDirectory`.
 *
 * @param flags - constants of `node:fs`.
 * @throws InvalidInputError if it is not a regular file.
 */
export async function openFile(
  root: WorkspaceRoot,
  parts: readonly string[],
  request: OpenRequest & { readonly flags: number },
): Promise<FileHandle> {
  return openInside(root, parts, request, async (realParts) => {
    const name = realParts.at(-1);
    if (name === undefined) {
      throw new InvalidInputError(`${JSON.stringify(request.given)} is a directory`, { remedy: "Name a file." });
    }
    await using directory = await descend(root, realParts.slice(0, -1), request);
    // Close the directory only after the file is open.
    return await openRegularFile(directory.entry(name), request.flags, request.given);
  });
}

/**
 * Opens a regular file without following a link, and without waiting for the other end of a named pipe that hostile
 * code put there.
 *
 * @throws the system's error, or InvalidInputError if it is something else.
 */
export async function openRegularFile(place: string | Buffer, flags: number, given: string): Promise<FileHandle> {
  const handle = await open(place, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o666);
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw notAFile(given);
}

/** Tries the path as given and, only if it contains a link or a file, the path that it resolves to. */
export async function openInside<T>(
  root: WorkspaceRoot,
  parts: readonly string[],
  { given }: OpenRequest,
  attempt: (parts: readonly string[]) => Promise<T>,
): Promise<T> {
  try {
    return await attempt(parts);
  } catch (error) {
    if (!["ELOOP", "EMLINK", "ENOTDIR"].includes(errorCode(error) ?? "")) throw asWorkspaceError(error, given);
  }
  const realParts = await resolveInside(root, parts, given);
  try {
    return await attempt(realParts);
  } catch (error) {
    throw asWorkspaceError(error, given);
  }
}

/** Descends from `root` step by step, without following links. Throws the system's errors. */
export async function descend(
  root: WorkspaceRoot,
  parts: readonly string[],
  { given, create, owner }: OpenRequest,
): Promise<PinnedDirectory> {
  let directory = await openRoot(root);
  for (const part of parts) {
    await using above = directory;
    const made = create && (await makeDirectory(above, part, given));
    directory = await above.child(part);
    if (made && owner) await directory.giveTo(owner);
  }
  return directory;
}

/** @throws BackendUnavailableError if something else is there now. */
async function openRoot(root: WorkspaceRoot): Promise<PinnedDirectory> {
  const directory = await PinnedDirectory.open(await realRootOf(root));
  if (root.identity === undefined || root.identity === (await directory.identity())) return directory;
  await directory[Symbol.asyncDispose]();
  throw workspaceReplaced(root.path);
}

/**
 * Resolves the links in `parts` below `root`; parts that do not exist stay unchanged.
 *
 * @throws WorkspacePathError if a symbolic link on the way leads out of `root`, or to nothing.
 */
async function resolveInside(root: WorkspaceRoot, parts: readonly string[], given: string): Promise<string[]> {
  const realRoot = await realRootOf(root);
  for (let known = parts.length; known > 0; known -= 1) {
    const candidate = systemPath(path.join(realRoot, ...parts.slice(0, known)));
    try {
      const relative = path.relative(realRoot, pathOfLatin1(await realpath(candidate, "latin1")));
      if (relative.split(path.sep)[0] === ".." || path.isAbsolute(relative)) throw outsideWorkspace(given);
      return [...relative.split(path.sep).filter((part) => part !== ""), ...parts.slice(known)];
    } catch (error) {
      if (WorkspacePathError.isInstance(error)) throw error;
      if (errorCode(error) !== "ENOENT" && errorCode(error) !== "ENOTDIR") throw asWorkspaceError(error, given);
      if (await isLink(candidate)) throw outsideWorkspace(given);
    }
  }
  return [...parts];
}

async function realRootOf({ path: root }: WorkspaceRoot): Promise<string> {
  return realpath(root).catch((cause: unknown) => {
    throw new BackendUnavailableError(`The workspace ${root} no longer exists`, {
      remedy: "Stop the executor; the next call starts it with a new workspace.",
      cause,
    });
  });
}

async function isLink(candidate: string | Buffer): Promise<boolean> {
  return lstat(candidate).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
}

/** Returns true if it did not exist before. */
async function makeDirectory(above: PinnedDirectory, name: string, given: string): Promise<boolean> {
  try {
    await mkdir(above.entry(name));
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    const existing = await lstat(above.entry(name)).catch(() => undefined);
    if (existing?.isFile() === true) throw belowFile(given);
    return false;
  }
}
