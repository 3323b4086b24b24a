import { randomUUID } from "node:crypto";
import { constants, createWriteStream, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath, rename, rm, stat, unlink } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { InvalidInputError } from "@fenced/core";
import {
  descend,
  openInside,
  openRegularFile,
  type OpenRequest,
  type PinnedDirectory,
  type WorkspaceRoot,
} from "./pinned-directory.ts";
import { asWorkspaceError, errorCode, notAFile } from "./workspace-errors.ts";

const newFile = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Operating systems, too, follow only about forty links in a path. */
const mostLinks = 40;

/** How to replace a file below a workspace. */
export interface ReplacementRequest extends OpenRequest {
  /** A unique name for the incomplete file, at the top of the workspace. */
  readonly part: string;
  /** Permission bits. Default: those of the file that is replaced, or of a new one. */
  readonly mode?: number | undefined;
}

/**
 * A file of a workspace while it is written. It takes the place of an older one when it is complete, so that neither a
 * full disk nor content that breaks off destroys what was there.
 */
export class FileReplacement implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #part: Place;
  readonly #target: Place;
  readonly #given: string;
  readonly #directories: readonly PinnedDirectory[];
  #over = false;

  private constructor(handle: FileHandle, parts: ReplacementParts) {
    this.#handle = handle;
    this.#part = parts.part;
    this.#target = parts.target;
    this.#given = parts.given;
    this.#directories = parts.directories;
  }

  /**
   * Opens a new file for `parts` below `root`; follows symbolic links as long as they stay inside.
   *
   * @throws InvalidInputError if there is something other than a regular file; WorkspacePathError if a symbolic link leads
   * out of `root`.
   */
  static async begin(
    root: WorkspaceRoot,
    parts: readonly string[],
    request: ReplacementRequest,
  ): Promise<FileReplacement> {
    return openInside(root, parts, request, async (realParts) => {
      const name = realParts.at(-1);
      if (name === undefined) {
        throw new InvalidInputError(`${JSON.stringify(request.given)} is a directory`, { remedy: "Name a file." });
      }
      const directories: PinnedDirectory[] = [];
      try {
        const directory = await descend(root, realParts.slice(0, -1), request);
        directories.push(directory);
        const before = await regularFile(directory, name, request.given);
        const top = await descend(root, [], request);
        directories.push(top);
        const opened = await openPart([top, directory], request.part);
        const replacement = new FileReplacement(opened.handle, {
          part: { directory: opened.directory, name: request.part },
          target: { directory, name },
          given: request.given,
          directories,
        });
        await replacement.#takeAfter(before, request);
        return replacement;
      } catch (error) {
        await closeAll(directories);
        throw error;
      }
    });
  }

  /** @throws errors of the workspace in place of the system's. */
  async writing(write: (handle: FileHandle) => Promise<void>): Promise<void> {
    try {
      await write(this.#handle);
    } catch (error) {
      throw asWorkspaceError(error, this.#given);
    }
  }

  /**
   * Puts the file in place, with everything that was written. Call it once.
   *
   * @throws InvalidInputError if code has replaced it meanwhile.
   */
  async complete(): Promise<void> {
    const { directory, name } = this.#target;
    const part = this.#part.directory.entry(this.#part.name);
    try {
      await moveInPlace(this.#handle, part, directory.entry(name)).catch(async (error: unknown) => {
        if (errorCode(error) !== "EXDEV") await writeIfMounted(error, this.#handle, directory.entry(name));
        else await copyInPlace(this.#handle, directory.entry(this.#part.name), directory.entry(name));
        await unlink(part);
      });
    } catch (error) {
      throw asWorkspaceError(error, this.#given);
    }
    this.#over = true;
    await this.#handle.close();
  }

  /** Discards the file unless it is complete, and closes everything. Never rejects; may be called more than once. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over) await unlink(this.#part.directory.entry(this.#part.name)).catch(() => {});
    this.#over = true;
    // A stream over it may already have closed it.
    await this.#handle.close().catch(() => {});
    await closeAll(this.#directories);
  }

  /** Gives the file what people set on the old one: its permissions, and its owner unless code has one of its own. */
  async #takeAfter(
    before: Stats | undefined,
    { owner, mode }: Pick<ReplacementRequest, "owner" | "mode">,
  ): Promise<void> {
    try {
      await likeBefore(this.#handle, before);
      if (mode !== undefined) await this.#handle.chmod(mode);
      if (owner) await this.#handle.chown(owner.uid, owner.gid);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }
}

interface Place {
  readonly directory: PinnedDirectory;
  readonly name: string;
}

interface ReplacementParts {
  readonly part: Place;
  readonly target: Place;
  readonly given: string;
  readonly directories: readonly PinnedDirectory[];
}

async function closeAll(directories: readonly PinnedDirectory[]): Promise<void> {
  for (const directory of directories) await directory[Symbol.asyncDispose]().catch(() => {});
}

/** @throws the system's error for a link, InvalidInputError for anything else that is not a file. */
async function regularFile(directory: PinnedDirectory, name: string, given: string): Promise<Stats | undefined> {
  const stats = await lstat(directory.entry(name)).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
    return undefined;
  });
  if (!stats) return undefined;
  if (stats.isSymbolicLink()) throw Object.assign(new Error(`${given} is a link`), { code: "ELOOP" });
  if (!stats.isFile()) throw notAFile(given);
  return stats;
}

/** Opens it at the top, where a session removes what is left of it, or beside the file if it could not be moved there. */
async function openPart(
  [top, beside]: readonly [PinnedDirectory, PinnedDirectory],
  name: string,
): Promise<{ readonly directory: PinnedDirectory; readonly handle: FileHandle }> {
  const [one, other] = await Promise.all([top.stat(), beside.stat()]);
  if (one.dev === other.dev) {
    try {
      return { directory: top, handle: await open(top.entry(name), newFile, 0o666) };
    } catch (error) {
      if (errorCode(error) !== "EACCES") throw error;
    }
  }
  return { directory: beside, handle: await open(beside.entry(name), newFile, 0o666) };
}

async function moveInPlace(handle: FileHandle, from: string | Buffer, to: string | Buffer): Promise<void> {
  await rename(from, to);
  await assertInPlace(handle, to);
}

/**
 * Copies a complete file to another mount.
 *
 * @param beside - a new file next to the target.
 */
async function copyInPlace(handle: FileHandle, beside: string | Buffer, target: string | Buffer): Promise<void> {
  const { mode, uid, gid } = await handle.stat();
  const copy = await open(beside, newFile, 0o666);
  try {
    await copyContent(handle, copy);
    await copy.chown(uid, gid).catch(() => {});
    await copy.chmod(mode & 0o777);
    await moveInPlace(copy, beside, target);
  } catch (error) {
    await unlink(beside).catch(() => {});
    await writeIfMounted(error, handle, target);
  } finally {
    await copy.close();
  }
}

/** Overwrites a file if it could not be replaced because it is mounted itself. @throws `cause` otherwise. */
async function writeIfMounted(cause: unknown, handle: FileHandle, target: string | Buffer): Promise<void> {
  if (errorCode(cause) !== "EBUSY") throw cause;
  await using file = await openRegularFile(target, constants.O_WRONLY, String(target));
  const [{ mode }, { mode: before }] = await Promise.all([handle.stat(), file.stat()]);
  if ((mode & 0o777) !== (before & 0o777)) await file.chmod(mode & 0o777);
  await file.truncate();
  await copyContent(handle, file);
}

async function copyContent(from: FileHandle, to: FileHandle): Promise<void> {
  const content: AsyncIterable<Uint8Array> = from.createReadStream({ autoClose: false, start: 0 });
  for await (const chunk of content) await to.writeFile(chunk);
}

/**
 * Writes a file of this host, in the same way. Writes through a link, and into what cannot be replaced: a pipe, or a file
 * in a directory that this process must not write to.
 */
export async function replaceLocalFile(file: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const target = await targetOf(file);
  const before = await stat(target).catch(() => undefined);
  if (before && !before.isFile()) return pipeline(content, createWriteStream(target));
  const part = path.join(path.dirname(target), `.fenced-${randomUUID()}.part`);
  const handle = await open(part, newFile, 0o666).catch((error: unknown) => {
    if (before && ["EACCES", "EPERM", "EROFS"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  });
  if (!handle) return pipeline(content, createWriteStream(target));
  try {
    await likeBefore(handle, before);
    for await (const chunk of content) await handle.writeFile(chunk);
    await moveInPlace(handle, part, target).catch(async (error: unknown) => {
      await writeIfMounted(error, handle, target);
      await rm(part);
    });
    await handle.close();
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(part, { force: true });
    throw error;
  }
}

/** The file that a program creates or changes which writes to a path. @throws the system's error for a circle of links. */
async function targetOf(file: string): Promise<string> {
  let at = file;
  for (let links = 0; links < mostLinks; links += 1) {
    const found = await realpath(at).catch(() => undefined);
    if (found !== undefined) return found;
    const next = await readlink(at).catch(() => undefined);
    if (next === undefined) return at;
    // A link to a file that does not exist yet.
    at = path.resolve(await realpath(path.dirname(at)), next);
  }
  throw Object.assign(new Error(`${file} leads to itself`), { code: "ELOOP" });
}

/**
 * Makes sure that a path leads to an open file: until it was there under its final name, code could put another one in
 * place of the incomplete file.
 *
 * @throws the system's error, or one with the code `ESTALE`.
 */
export async function assertInPlace(handle: FileHandle, place: string | Buffer): Promise<void> {
  const [written, there] = await Promise.all([handle.stat({ bigint: true }), lstat(place, { bigint: true })]);
  if (written.dev === there.dev && written.ino === there.ino) return;
  throw Object.assign(new Error(`${String(place)} is not the file that was written`), { code: "ESTALE" });
}

/** Gives a file the permissions of the one that it replaces, and its owner, if this process may give files away. */
async function likeBefore(handle: FileHandle, before: Stats | undefined): Promise<void> {
  if (!before) return;
  await handle.chown(before.uid, before.gid).catch(() => {});
  await handle.chmod(before.mode & 0o777);
}
