import { randomUUID } from "node:crypto";
import { constants, createReadStream, type Stats } from "node:fs";
import { lstat, readlink, rename, stat, unlink, type FileHandle } from "node:fs/promises";
import path from "node:path";
import {
  InvalidInputError,
  type FileEntry,
  type FileFeature,
  type FileStat,
  type ListOptions,
  type WriteOptions,
} from "@fenced/core";
import { DirectoryTree } from "../checkpoints/directory-tree.ts";
import type { WorkspaceTree } from "../checkpoints/workspace-tree.ts";
import { treeFileFeatures, wholeFile, type BackendFiles, type ByteRange, type FileWriter } from "./backend-files.ts";
import { collectContent, FileListing, fileLimits, tooLarge, type FileLimits } from "./file-limits.ts";
import { FileReplacement } from "./file-replacement.ts";
import { LocalCopies } from "./local-copies.ts";
import { localFileSize } from "./local-file.ts";
import { modifiedAt } from "./modified-at.ts";
import { pathOfLatin1 } from "./path-bytes.ts";
import {
  openDirectory,
  openFile,
  type FileOwner,
  type PinnedDirectory,
  type WorkspaceRoot,
} from "./pinned-directory.ts";
import { removeEntry, walkTree } from "./walk-tree.ts";
import { asWorkspaceError, errorCode, inTheWayOf, notAFile } from "./workspace-errors.ts";
import { movedPaths, normalizeWorkspacePath } from "./workspace-path.ts";

/** Time limit for a listing in milliseconds, since code may keep adding directories. */
const listingMs = 120_000;
/** Minimum size in bytes that a directory entry counts as. */
const leastEntry = 512;
/** Number of files to inspect at the same time. */
const batchSize = 64;

/** Options of `DirectoryFiles`; all are optional. */
export interface DirectoryFilesOptions {
  /** Returns true for the relative paths of the executor's own files, which are not listed. Default: no such files. */
  readonly isHidden?: ((relativePath: string) => boolean) | undefined;
  /** A unique name at the top of the workspace, which `isHidden` knows, for a file that is not complete yet. */
  readonly newPart?: (() => string) | undefined;
  /**
   * The owner of what is written, if code runs as a different user than this process, which must then be root. Default:
   * this process's user.
   */
  readonly owner?: FileOwner | undefined;
  /** What `PinnedDirectory.identity` said of the directory; nothing else is accepted in its place. Default: anything is. */
  readonly identity?: string | undefined;
  /** Limits on what is read into memory. Default: `fileLimits`. */
  readonly limits?: FileLimits | undefined;
}

/** The files of a workspace that is a directory of this host. Symbolic links are not listed. */
export class DirectoryFiles implements BackendFiles {
  readonly features: readonly FileFeature[] = treeFileFeatures;
  readonly #root: WorkspaceRoot;
  readonly #isHidden: (relativePath: string) => boolean;
  readonly #owner: FileOwner | undefined;
  readonly #limits: FileLimits;
  readonly #newPart: () => string;
  readonly tree: WorkspaceTree;

  /** @param root - the workspace's directory, which must exist when a method is called. */
  constructor(
    root: string,
    { isHidden = isPart, owner, identity, limits = fileLimits, newPart = partName }: DirectoryFilesOptions = {},
  ) {
    this.#root = { path: root, ...(identity === undefined ? {} : { identity }) };
    this.#isHidden = isHidden;
    this.#owner = owner;
    this.#limits = limits;
    this.#newPart = newPart;
    this.tree = new DirectoryTree({ root: this.#root, isHidden, newPart, owner });
  }

  async list(directory = ".", options: ListOptions = {}): Promise<FileEntry[]> {
    const listing = new FileListing(directory, this.#limits);
    const relative = normalizeWorkspacePath(directory);
    const prefix = relative === "." ? "" : `${relative}/`;
    await using top = await openDirectory(this.#root, partsOf(relative), { given: directory, create: false });
    await walkTree(top, {
      enter: async (each, below) => {
        const directories = await this.#look(each, `${prefix}${below}`, listing, options.directories);
        return options.recursive === false ? [] : directories;
      },
      open: (each, name) => each.child(name).catch(() => undefined),
      deadline: performance.now() + listingMs,
    });
    return listing.sorted();
  }

  async diskUsage(atMost: number): Promise<number> {
    await using top = await openDirectory(this.#root, [], { given: ".", create: false });
    let bytes = 0;
    await walkTree(top, {
      enter: async (directory) => {
        const below: string[] = [];
        for await (const { name, isDirectory } of directory.entries()) {
          if (bytes > atMost) return [];
          if (isDirectory) below.push(name);
          const stats = await lstat(directory.entry(name)).catch(() => undefined);
          // Entries without content also use space, and take time to count, so both are limited.
          bytes += Math.max(leastEntry, (stats?.blocks ?? 0) * 512);
        }
        return below;
      },
      open: (each, name) => (bytes > atMost ? Promise.resolve(undefined) : each.child(name).catch(() => undefined)),
      deadline: performance.now() + listingMs,
    });
    return bytes;
  }

  async stat(file: string, followLinks = true): Promise<FileStat> {
    const relative = normalizeWorkspacePath(file);
    const link = await this.#link(partsOf(relative), file);
    if (link && !followLinks) return { path: relative, type: "link", ...link };
    const found = await this.#found(file, relative);
    return link ? { ...found, linkTarget: link.linkTarget } : found;
  }

  /** What is at a path, or where the link there leads. */
  async #found(file: string, relative: string): Promise<FileStat> {
    const parts = partsOf(relative);
    const request = { given: file, create: false };
    try {
      if (parts.length === 0) throw notAFile(file);
      await using handle = await openFile(this.#root, parts, { ...request, flags: constants.O_RDONLY });
      const { size, mtime, mode } = await handle.stat();
      return { path: relative, type: "file", size, mode: mode & 0o777, ...modifiedAt(mtime.getTime()) };
    } catch (error) {
      if (!InvalidInputError.isInstance(error)) throw error;
      await using directory = await openDirectory(this.#root, parts, request).catch(() => {
        throw error;
      });
      const { mtime, mode } = await directory.stat();
      return { path: relative, type: "directory", size: 0, mode: mode & 0o777, ...modifiedAt(mtime.getTime()) };
    }
  }

  /** The link at a path itself, if there is one. */
  async #link(
    parts: readonly string[],
    given: string,
  ): Promise<(Pick<FileStat, "size" | "mode" | "modifiedAt"> & { readonly linkTarget: string }) | undefined> {
    const name = parts.at(-1);
    if (name === undefined) return undefined;
    await using directory = await openDirectory(this.#root, parts.slice(0, -1), { given, create: false });
    try {
      const stats = await lstat(directory.entry(name));
      if (!stats.isSymbolicLink()) return undefined;
      const linkTarget = pathOfLatin1(await readlink(directory.entry(name), "latin1"));
      return { size: stats.size, mode: stats.mode & 0o777, linkTarget, ...modifiedAt(stats.mtime.getTime()) };
    } catch (error) {
      // Code has put something else there meanwhile.
      if (errorCode(error) === "EINVAL") return undefined;
      throw asWorkspaceError(error, given);
    }
  }

  async read(file: string): Promise<Uint8Array> {
    return this.#withFile(file, constants.O_RDONLY, async (handle) => {
      const { readBytes } = this.#limits;
      // A sparse file uses no disk space, but its full size in memory.
      if ((await handle.stat()).size > readBytes) throw tooLarge(file, readBytes);
      return collectContent(file, handle.createReadStream({ autoClose: false }), this.#limits);
    });
  }

  async write(file: string, data: Uint8Array | string, options: WriteOptions = {}): Promise<void> {
    await using replacement = await this.#replace(file, options);
    await replacement.writing((handle) => handle.writeFile(data));
    await replacement.complete();
  }

  async remove(file: string): Promise<void> {
    const parts = partsOf(normalizeWorkspacePath(file));
    const name = parts.pop();
    if (name === undefined) {
      throw new InvalidInputError("The workspace itself cannot be removed", {
        remedy: "Name a file or directory in it.",
      });
    }
    await using directory = await openDirectory(this.#root, parts, { given: file, create: false });
    try {
      await removeEntry(directory, name);
    } catch (error) {
      throw asWorkspaceError(error, file);
    }
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    for (const local of localPaths) await localFileSize(local);
    for (const local of localPaths) {
      await this.put(path.basename(local), createReadStream(local));
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies = new LocalCopies(toDirectory);
    for (const file of files) {
      const relative = normalizeWorkspacePath(file);
      await this.#withFile(file, constants.O_RDONLY, async (handle) => {
        if (await isSameFile(handle, copies.placeOf(relative))) copies.keep(relative);
        else await copies.put(relative, handle.createReadStream());
      });
    }
    return copies.paths;
  }

  async *content(file: string, { start, end }: ByteRange = wholeFile): AsyncGenerator<Uint8Array, void, void> {
    const handle = await this.#open(file, constants.O_RDONLY);
    try {
      yield* handle.createReadStream({ autoClose: false, start, end });
    } finally {
      await handle.close();
    }
  }

  async move(from: string, to: string): Promise<void> {
    const [source, target] = movedPaths(from, to).map(partsOf);
    const [name, newName] = [source?.pop(), target?.pop()];
    if (!source || !target || name === undefined || newName === undefined) return;
    await using above = await openDirectory(this.#root, source, { given: from, create: false });
    const moved = await statusOf(above.entry(name), from);
    const owner = this.#owner === undefined ? {} : { owner: this.#owner };
    await using newAbove = await openDirectory(this.#root, target, { given: to, create: true, ...owner });
    const replaced = await lstat(newAbove.entry(newName)).catch(() => undefined);
    const same = replaced !== undefined && isSame(replaced, moved);
    if (replaced && !same && (replaced.isDirectory() || moved.isDirectory())) throw inTheWayOf(to);
    const hasNames = same && moved.nlink > 1 && !moved.isDirectory();
    const isHere = hasNames && isSameName(name, newName) && isSame(await above.stat(), await newAbove.stat());
    try {
      // Renaming one name of a file to another one of it would leave both.
      if (hasNames && !isHere) await unlink(above.entry(name));
      else await rename(above.entry(name), newAbove.entry(newName));
    } catch (error) {
      throw asWorkspaceError(error, to);
    }
  }

  async makeDirectory(given: string): Promise<void> {
    const owner = this.#owner === undefined ? {} : { owner: this.#owner };
    const parts = partsOf(normalizeWorkspacePath(given));
    await using _ = await openDirectory(this.#root, parts, { given, create: true, ...owner });
  }

  async writer(file: string, options: WriteOptions = {}): Promise<FileWriter> {
    const replacement = await this.#replace(file, options);
    const abort = (): Promise<void> => replacement[Symbol.asyncDispose]();
    return {
      write: (bytes) => replacement.writing((handle) => handle.writeFile(bytes)),
      close: async () => {
        try {
          await replacement.complete();
        } finally {
          await abort();
        }
      },
      abort,
    };
  }

  /**
   * Creates or replaces a file with streamed content.
   *
   * @throws InvalidInputError, WorkspacePathError
   */
  async put(file: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await using replacement = await this.#replace(file);
    for await (const chunk of content) await replacement.writing((handle) => handle.writeFile(chunk));
    await replacement.complete();
  }

  /** Adds the regular files of one directory to `listing`, and the directories if wanted; returns the names of these. */
  async #look(
    directory: PinnedDirectory,
    prefix: string,
    listing: FileListing,
    listDirectories = false,
  ): Promise<string[]> {
    const directories: string[] = [];
    let files: Promise<void>[] = [];
    const add = async (name: string): Promise<void> => {
      const stats = await lstat(directory.entry(name)).catch(() => undefined);
      if (stats?.isFile() === true) listing.add({ path: `${prefix}${name}`, type: "file", size: stats.size });
    };
    for await (const { name, isDirectory, isFile } of directory.entries()) {
      const file = `${prefix}${name}`;
      listing.count(file);
      if (isDirectory) {
        directories.push(name);
        if (listDirectories && !this.#isHidden(file)) listing.add({ path: file, type: "directory", size: 0 });
      } else if (isFile && !this.#isHidden(file) && files.push(add(name)) === batchSize) {
        await Promise.all(files);
        files = [];
      }
    }
    await Promise.all(files);
    return directories;
  }

  async #replace(file: string, { mode }: WriteOptions = {}): Promise<FileReplacement> {
    const owner = this.#owner;
    return FileReplacement.begin(this.#root, partsOf(normalizeWorkspacePath(file)), {
      given: file,
      create: true,
      part: this.#newPart(),
      mode,
      ...(owner === undefined ? {} : { owner }),
    });
  }

  async #withFile<T>(file: string, flags: number, use: (handle: FileHandle) => Promise<T>): Promise<T> {
    const handle = await this.#open(file, flags);
    try {
      return await use(handle);
    } finally {
      // A stream over the handle may already have closed it.
      await handle.close().catch(() => {});
    }
  }

  async #open(file: string, flags: number): Promise<FileHandle> {
    return openFile(this.#root, partsOf(normalizeWorkspacePath(file)), { given: file, create: false, flags });
  }
}

function partName(): string {
  return `.fenced-${randomUUID()}.part`;
}

function isPart(relativePath: string): boolean {
  return /^\.fenced-[\da-f-]{36}\.part$/.test(relativePath);
}

function partsOf(normalPath: string): string[] {
  return normalPath === "." ? [] : normalPath.split("/");
}

async function isSameFile(handle: FileHandle, file: string): Promise<boolean> {
  const other = await stat(file, { bigint: true }).catch(() => undefined);
  const one = await handle.stat({ bigint: true });
  return one.dev === other?.dev && one.ino === other.ino;
}

function isSame(one: Stats, other: Stats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** Whether a directory that ignores case may take two names for the same. */
function isSameName(one: string, other: string): boolean {
  return one.normalize().toLowerCase() === other.normalize().toLowerCase();
}

async function statusOf(place: string | Buffer, given: string): Promise<Stats> {
  try {
    return await lstat(place);
  } catch (error) {
    throw asWorkspaceError(error, given);
  }
}
