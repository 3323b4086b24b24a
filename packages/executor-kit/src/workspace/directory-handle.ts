import { constants } from "node:fs";
import { lchown, lstat, mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { errorCode } from "../error-code.ts";
import { outsideWorkspace } from "./workspace-path.ts";

/**
 * An open directory inside a workspace. On Linux its entries are named through the open descriptor, so that code
 * which swaps a directory for a symbolic link meanwhile cannot lead the host out of the workspace.
 */
export interface DirectoryHandle extends AsyncDisposable {
  /** The path under which to reach an entry of this directory. */
  entry(name: string): string;
}

/** Whose a file is. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Opens the directory at `parts` below `root`; symbolic links are followed as long as they stay inside.
 *
 * @param given - the path as the caller gave it, for errors.
 * @param create - makes what is missing on the way.
 * @param owner - whom to give what is made.
 * @throws WorkspacePathError if a symbolic link leads out of `root`.
 * @throws FileNotFoundError if it is not there and not to be made.
 */
export async function openDirectory(
  root: string,
  parts: readonly string[],
  { given, create, owner }: { readonly given: string; readonly create: boolean; readonly owner?: FileOwner },
): Promise<DirectoryHandle> {
  const realParts = await resolveInside(root, parts, given);
  let directory = await openHandle(await realRootOf(root), given);
  for (const part of realParts) {
    const next = directory.entry(part);
    try {
      if (create) await makeDirectory(next, given, owner);
      const opened = await openHandle(next, given);
      await directory[Symbol.asyncDispose]();
      directory = opened;
    } catch (error) {
      await directory[Symbol.asyncDispose]();
      throw error;
    }
  }
  return directory;
}

/** Opens a regular file in `directory` without following a symbolic link. Flags are those of `node:fs` constants. */
export async function openFile(
  directory: DirectoryHandle,
  name: string,
  { given, flags }: { readonly given: string; readonly flags: number },
): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    // Non-blocking, because a named pipe that hostile code left there would hold the caller for ever.
    handle = await open(directory.entry(name), flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o666);
  } catch (error) {
    throw asWorkspaceError(error, given);
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw notAFile(given);
}

/**
 * The error of a file system for a path in a workspace, as the errors that `WorkspaceFiles` promises. What counts is its
 * `code`, as Node has it: `ENOENT`, `EISDIR`, `ELOOP` (the path leads out), `EEXIST` (a part of it is a file).
 */
export function asWorkspaceError(error: unknown, given: string): unknown {
  const code = errorCode(error);
  if (code === "ELOOP" || code === "EMLINK") return outsideWorkspace(given);
  if (code === "ENXIO" || code === "EISDIR") return notAFile(given);
  if (code === "ENAMETOOLONG" || code === "EILSEQ") return unusableName(given);
  if (code === "EEXIST") return belowFile(given);
  if (code !== "ENOENT" && code !== "ENOTDIR") return refused(error, given);
  return new FileNotFoundError(`There is no file ${JSON.stringify(given)} in the workspace`, {
    remedy: "`files.list()` says which files there are.",
    cause: error,
  });
}

// On Windows these are undefined, which adds nothing to other flags.
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

function notAFile(given: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(given)} is not a regular file`, {
    remedy: "Name a file; `files.list()` says which there are.",
  });
}

async function openHandle(directory: string, given: string): Promise<DirectoryHandle> {
  if (process.platform !== "linux") {
    return { entry: (name) => path.join(directory, name), [Symbol.asyncDispose]: async () => {} };
  }
  try {
    const handle = await open(directory, directoryFlags);
    return {
      entry: (name) => `/proc/self/fd/${handle.fd}/${name}`,
      [Symbol.asyncDispose]: async () => handle.close(),
    };
  } catch (error) {
    throw asWorkspaceError(error, given);
  }
}

/**
 * Where `parts` below `root` really lead to; what does not exist yet is taken as it is.
 *
 * @throws WorkspacePathError if a symbolic link on the way leads out of `root`, or to nothing.
 */
export async function resolveInside(root: string, parts: readonly string[], given: string): Promise<string[]> {
  const realRoot = await realRootOf(root);
  for (let known = parts.length; known > 0; known -= 1) {
    const candidate = path.join(realRoot, ...parts.slice(0, known));
    try {
      const relative = path.relative(realRoot, await realpath(candidate));
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

async function realRootOf(root: string): Promise<string> {
  return realpath(root).catch((cause: unknown) => {
    throw new BackendUnavailableError(`The workspace ${root} is gone`, {
      remedy: "Stop the executor; the next call starts it with a fresh workspace.",
      cause,
    });
  });
}

async function isLink(candidate: string): Promise<boolean> {
  return lstat(candidate).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
}

async function makeDirectory(directory: string, given: string, owner: FileOwner | undefined): Promise<void> {
  try {
    await mkdir(directory);
    // The link itself, should code have put one in the directory's place by now.
    if (owner) await lchown(directory, owner.uid, owner.gid);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw asWorkspaceError(error, given);
    if ((await lstat(directory)).isFile()) throw belowFile(given);
  }
}

function unusableName(given: string): InvalidInputError {
  return new InvalidInputError(`The file system takes no such name: ${JSON.stringify(given.slice(0, 100))}`, {
    remedy: "Use a shorter name of ordinary characters.",
  });
}

function belowFile(given: string): InvalidInputError {
  return new InvalidInputError(`A part of the path ${JSON.stringify(given)} is a file, not a directory`, {
    remedy: "Remove that file first, or choose another path.",
  });
}

function refused(cause: unknown, given: string): BackendUnavailableError {
  return new BackendUnavailableError(`The system refuses ${JSON.stringify(given)}: ${String(cause)}`, {
    remedy: "See that the disk is not full and that the workspace's permissions allow it.",
    cause,
  });
}
