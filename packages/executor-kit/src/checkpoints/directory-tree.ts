import { constants, type Stats } from "node:fs";
import { lstat, lutimes, mkdir, open, readlink, rename, rmdir, symlink, type FileHandle } from "node:fs/promises";
import { checkpointPartBytes, InvalidInputError } from "@fenced/core";
import { AtOnce } from "../workspace/at-once.ts";
import { pathOfLatin1, systemPath } from "../workspace/path-bytes.ts";
import { PinnedDirectories } from "../workspace/pinned-directories.ts";
import {
  type FileOwner,
  isNoDirectory,
  openDirectory,
  openRegularFile,
  type PinnedDirectory,
  type WorkspaceRoot,
} from "../workspace/pinned-directory.ts";
import { removeEntry, walkTree } from "../workspace/walk-tree.ts";
import { asWorkspaceError, errorCode } from "../workspace/workspace-errors.ts";
import { inTheWay } from "./in-the-way.ts";
import { settlingTime } from "./settling-time.ts";
import type {
  FileParts,
  FileVisit,
  PlannedEntry,
  TreeEntry,
  TreeLoss,
  TreePlan,
  WantedFile,
  WorkspaceTree,
} from "./workspace-tree.ts";

/** Time limit for a listing in milliseconds, since code may keep adding directories. */
const listingMs = 300_000;
/** Number of entries to inspect, and of files to read and to write, at the same time. */
const batchSize = 64;
const filesAtOnce = 8;
/** Files that belong to a user or a group whose rights they run with. */
const privileges = 0o6000;

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const permissions = 0o777;
/** Errors of a file system that does not support a name or a link. */
const impossible = ["ENAMETOOLONG", "EILSEQ", "EINVAL", "EPERM", "ENOTSUP", "EOPNOTSUPP"];

/** Errors of a single directory, by which code must not hide all others. */
const mustNotEndListing = ["ENOENT", "EACCES", "EPERM", "EIO", "ESTALE"];

/** Where a `DirectoryTree` is. */
export interface DirectoryTreeSettings {
  readonly root: WorkspaceRoot;
  /** Returns true for the relative paths of the executor's own files. */
  readonly isHidden: (relativePath: string) => boolean;
  /** A unique name at the top of the workspace for what is not complete yet. */
  readonly newPart: () => string;
  readonly owner: FileOwner | undefined;
}

/** The tree of a workspace that is a directory of this host. Never follows a link, whatever code puts in its way. */
export class DirectoryTree implements WorkspaceTree {
  readonly #settings: DirectoryTreeSettings;

  constructor(settings: DirectoryTreeSettings) {
    this.#settings = settings;
  }

  async list(add: (entry: TreeEntry) => void): Promise<void> {
    await using top = await this.#open();
    await walkTree(top, {
      enter: (directory, below) =>
        this.#look(directory, below, add).catch((error: unknown) => {
          if (below === "" || !mustNotEndListing.includes(errorCode(error) ?? "")) throw error;
          // Nothing in a directory may be looked at without the right to search it; or it is gone.
          if (errorCode(error) !== "ENOENT") add(unknownEntry(below.slice(0, -1)));
          return [];
        }),
      open: (directory, name, below) =>
        directory.child(name).catch((error: unknown) => {
          // What is gone is left out; what is in an unreadable directory is listed as such.
          if (!isNoDirectory(error)) add(unknownEntry(`${below}${name}`));
          return undefined;
        }),
      deadline: performance.now() + listingMs,
    });
  }

  async read<File extends WantedFile>(files: readonly File[], visit: FileVisit<File>): Promise<void> {
    await using top = await this.#open();
    await using directories = new PinnedDirectories(top);
    const reading = new AtOnce(filesAtOnce);
    try {
      for (const file of files) {
        await reading.start(async () => {
          const handle = await this.#openToRead(directories, file.path);
          if (typeof handle === "string") return visit(file, handle);
          try {
            await visit(file, contentOf(handle, file.size));
          } finally {
            await handle.close();
          }
        });
      }
      await reading.finish();
    } finally {
      await reading.settle();
    }
  }

  async create(plan: TreePlan, lose: TreeLoss): Promise<void> {
    await using top = await this.#open();
    const name = this.#settings.newPart();
    await mkdir(top.entry(name), 0o700);
    try {
      const planned = await this.#stage(top, name, plan, lose);
      await using staged = await top.child(name);
      await assertFits(staged, top, "");
      await moveInto(staged, top);
      await this.#finishDirectories(top, planned, lose);
    } catch (error) {
      throw asWorkspaceError(error, ".");
    } finally {
      await removeEntry(top, name).catch(() => {});
    }
  }

  async #look(directory: PinnedDirectory, prefix: string, add: (entry: TreeEntry) => void): Promise<string[]> {
    const below: string[] = [];
    let batch: Promise<void>[] = [];
    const look = async (name: string): Promise<void> => {
      const entry = await entryOf(directory, name, `${prefix}${name}`);
      if (!entry) return;
      add(entry);
      if (entry.type === "directory") below.push(name);
    };
    for await (const { name } of directory.entries()) {
      if (this.#settings.isHidden(`${prefix}${name}`)) continue;
      const looking = look(name);
      // Another name is still being read when it fails.
      looking.catch(() => {});
      if (batch.push(looking) < batchSize) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
    return below;
  }

  /** Creates everything beside what is there. Returns the directories. */
  async #stage(top: PinnedDirectory, name: string, plan: TreePlan, lose: TreeLoss): Promise<PlannedEntry[]> {
    const { owner } = this.#settings;
    await using staging = await top.child(name);
    await using directories = new PinnedDirectories(staging, { create: true, owner });
    const writing = new AtOnce(filesAtOnce);
    const planned: PlannedEntry[] = [];
    try {
      for await (const entry of plan.entries()) {
        if (entry.type === "directory") planned.push(entry);
        await writing.start(() => writeEntry(directories, entry, owner).catch(orLose(entry.path, lose)));
      }
      await writing.finish();
      return planned;
    } finally {
      await writing.settle();
    }
  }

  /** Sets what would have changed, or been in the way, while their content was put into them. */
  async #finishDirectories(top: PinnedDirectory, planned: readonly PlannedEntry[], lose: TreeLoss): Promise<void> {
    await using directories = new PinnedDirectories(top);
    for (const entry of planned.toReversed()) {
      await directories
        .within(entry.path, async (above, name) => {
          await using directory = await above.child(name);
          await directory.setStatus(entry);
        })
        .catch(() => lose(entry.path, "Its permissions and time could not be set"));
    }
  }

  async #openToRead(directories: PinnedDirectories, path: string): Promise<FileHandle | "gone" | "unreadable"> {
    try {
      return await directories.within(path, (directory, name) =>
        openRegularFile(directory.entry(name), constants.O_RDONLY, path),
      );
    } catch (error) {
      // Something else is there now, or nothing.
      if (InvalidInputError.isInstance(error)) return "gone";
      const code = errorCode(error) ?? "";
      if (["ENOENT", "ENOTDIR", "ELOOP", "EMLINK", "ENXIO"].includes(code)) return "gone";
      if (["EACCES", "EPERM"].includes(code)) return "unreadable";
      throw asWorkspaceError(error, path);
    }
  }

  #open(): Promise<PinnedDirectory> {
    return openDirectory(this.#settings.root, [], { given: ".", create: false });
  }
}

async function entryOf(directory: PinnedDirectory, name: string, path: string): Promise<TreeEntry | undefined> {
  const now = Date.now();
  const stats = await lstat(directory.entry(name)).catch((error: unknown) =>
    errorCode(error) === "ENOENT" ? undefined : "unknown",
  );
  if (stats === undefined) return undefined;
  if (stats === "unknown") return unknownEntry(path);
  const identity = stateOf(stats);
  const settlesIn = settlingTime(stats.ctimeMs, now);
  const entry = { path, mode: stats.mode & permissions, modifiedAt: stats.mtimeMs, size: 0, identity, settlesIn };
  if (stats.isFile()) {
    const state = settlesIn === undefined ? identity : undefined;
    return { ...entry, type: "file", size: stats.size, state, isPrivileged: (stats.mode & privileges) !== 0 };
  }
  if (stats.isDirectory()) return { ...entry, type: "directory" };
  if (!stats.isSymbolicLink()) return { ...entry, type: "other" };
  const target = await readlink(directory.entry(name), "latin1").catch(() => undefined);
  return target === undefined ? undefined : { ...entry, type: "link", target: pathOfLatin1(target) };
}

function unknownEntry(path: string): TreeEntry {
  return { path, type: "unknown", mode: 0, modifiedAt: 0, size: 0 };
}

/** Code cannot set the time of the last change. */
function stateOf({ size, ino, ctimeMs }: Stats): string {
  return `${size}-${ino}-${ctimeMs}`;
}

function settledState(stats: Stats, now: number): string | undefined {
  return settlingTime(stats.ctimeMs, now) === undefined ? stateOf(stats) : undefined;
}

async function* contentOf(handle: FileHandle, atMost: number): FileParts {
  const now = Date.now();
  const before = await handle.stat();
  const size = Math.min(before.size, atMost);
  let at = 0;
  while (at < size) {
    const part = Buffer.allocUnsafeSlow(Math.min(checkpointPartBytes, size - at));
    const length = await fill(handle, part, at);
    if (length > 0) yield part.subarray(0, length);
    at += length;
    if (length < part.length) break;
  }
  const after = await handle.stat();
  const isChanged = at !== size || after.size > size || stateOf(before) !== stateOf(after);
  return { isChanged, state: isChanged ? undefined : settledState(after, now), size: after.size };
}

/** Reads until the part is full or the file ends. Returns how much there was. */
async function fill(handle: FileHandle, part: Buffer, at: number): Promise<number> {
  let filled = 0;
  while (filled < part.length) {
    const { bytesRead } = await handle.read(part, filled, part.length - filled, at + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

async function writeEntry(
  directories: PinnedDirectories,
  entry: PlannedEntry,
  owner: FileOwner | undefined,
): Promise<void> {
  if (entry.type === "directory") return directories.within(`${entry.path}/.`, async () => {});
  return directories.within(entry.path, async (directory, name) => {
    const place = directory.entry(name);
    if (entry.type === "file") return writeFile(place, entry, owner);
    await symlink(systemPath(entry.target), place);
    await lutimes(place, entry.modifiedAt / 1000, entry.modifiedAt / 1000);
  });
}

async function writeFile(place: string | Buffer, entry: PlannedEntry, owner: FileOwner | undefined): Promise<void> {
  await using handle = await open(place, newFile, 0o600);
  let at = 0;
  let isHole = false;
  for await (const piece of entry.content()) {
    isHole = piece === "hole";
    const size = piece === "hole" ? Math.min(checkpointPartBytes, entry.size - at) : piece.length;
    if (piece !== "hole") await writeAt(handle, piece, at);
    at += size;
  }
  if (isHole) await handle.truncate(at);
  if (owner) await handle.chown(owner.uid, owner.gid);
  await handle.chmod(entry.mode);
  await handle.utimes(entry.modifiedAt / 1000, entry.modifiedAt / 1000);
}

async function writeAt(handle: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < piece.length;) {
    written += (await handle.write(piece, written, piece.length - written, at + written)).bytesWritten;
  }
}

function orLose(path: string, lose: TreeLoss): (error: unknown) => void {
  return (error) => {
    const code = errorCode(error) ?? "";
    if (!impossible.includes(code)) throw error;
    lose(path, `The file system there does not support it (${code})`);
  };
}

/** @throws InvalidInputError if a directory would have to replace something else, or the other way round. */
async function assertFits(staged: PinnedDirectory, target: PinnedDirectory, prefix: string): Promise<void> {
  for await (const { name, isDirectory } of staged.entries()) {
    const there = await kindAt(target, name);
    if (there === undefined) continue;
    if (isDirectory !== (there === "directory")) throw inTheWay(`${prefix}${name}`, there);
    if (!isDirectory) continue;
    await using below = await staged.child(name);
    await using targetBelow = await target.child(name);
    await assertFits(below, targetBelow, `${prefix}${name}/`);
  }
}

/** Moves whole directories at once where nothing is there yet. */
async function moveInto(staged: PinnedDirectory, target: PinnedDirectory): Promise<void> {
  const names: { readonly name: string; readonly isDirectory: boolean }[] = [];
  for await (const entry of staged.entries()) names.push(entry);
  for (const { name, isDirectory } of names) {
    if (!isDirectory || (await kindAt(target, name)) === undefined) {
      await rename(staged.entry(name), target.entry(name));
      continue;
    }
    await using below = await staged.child(name);
    await using targetBelow = await target.child(name);
    await moveInto(below, targetBelow);
    await rmdir(staged.entry(name));
  }
}

async function kindAt(directory: PinnedDirectory, name: string): Promise<"directory" | "file" | undefined> {
  const stats = await lstat(directory.entry(name)).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
    return undefined;
  });
  if (!stats) return undefined;
  return stats.isDirectory() ? "directory" : "file";
}
