import { randomUUID } from "node:crypto";
// Always with `bigint`, as the lint rule requires.
// oxlint-disable-next-line no-restricted-imports
import { closeSync, constants, fchownSync, fstatSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { chown, mkdir, realpath, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { BackendUnavailableError, FencedError, InvalidInputError, type FunctionWithRequirements } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import { functionsPackageMarker } from "../functions/function-modules.ts";
import { blockSource } from "../languages/command-languages.ts";
import type { LeashOptions } from "../processes/leash.ts";
import type { BlockRun } from "../run/block-run.ts";
import { DirectoryFiles } from "./directory-files.ts";
import { openRegularFile, type FileOwner, PinnedDirectory } from "./pinned-directory.ts";
import { refusalRemedy } from "./refusal-remedy.ts";
import { removeEntry, removeTree } from "./walk-tree.ts";
import { errorCode, directoryNotCreated, workspaceReplaced } from "./workspace-errors.ts";

/** Maximum size of an executor's own file. */
const longestOwnFile = 1_048_576;
const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The session that owns the directories. */
export interface SessionOwner {
  /** The executor's id; globally unique. */
  readonly id: string;
  /** Absolute path of the user's work directory; created if missing, and kept. `undefined` for a temporary one. */
  readonly workDirectory: string | undefined;
  readonly functions: readonly FunctionWithRequirements[];
  /**
   * The name of the functions' module; if it has JavaScript functions, its package in `node_modules` belongs to the
   * session.
   */
  readonly functionsModule: string;
}

/** The directories of this host that a session uses, and the session's own files in them. */
export class SessionDirectories {
  /** The session's own directory, deleted with the session. */
  readonly sessionDirectory: string;
  /** True if the work directory belongs to the user, and is kept. */
  readonly given: boolean;
  /** The prefix of the names of the session's own files in the work directory. */
  readonly filePrefix: string;
  readonly #of: SessionOwner;
  #workDirectory: string;
  #identity = "";
  #owner: FileOwner = { uid: -1, gid: -1 };
  #giveTo: FileOwner | undefined;
  #hasPackage: boolean;

  private constructor(sessionDirectory: string, of: SessionOwner) {
    this.sessionDirectory = sessionDirectory;
    this.given = of.workDirectory !== undefined;
    this.filePrefix = `.fenced-${of.id.slice(0, 8)}-`;
    this.#of = of;
    this.#hasPackage = of.functions.some(({ language }) => language === "javascript");
    this.#workDirectory = of.workDirectory ?? path.join(sessionDirectory, "workspace");
  }

  /** Decides where the directories will be without creating anything, so that a leash can be told first. */
  static async plan(of: SessionOwner): Promise<SessionDirectories> {
    return new SessionDirectories(path.join(await realpath(tmpdir()), `fenced-${randomUUID()}`), of);
  }

  /** What a leash must delete. */
  get leashed(): Pick<LeashOptions, "remove" | "removePrefixes" | "removeOwned"> {
    return {
      remove: [this.sessionDirectory],
      removePrefixes: [path.join(this.#workDirectory, this.filePrefix)],
      removeOwned: path.join(this.#workDirectory, "node_modules", this.#of.functionsModule),
    };
  }

  /**
   * Creates the directories.
   *
   * @throws BackendUnavailableError if they cannot be created.
   */
  async make(): Promise<void> {
    try {
      // Not `recursive`, which would accept a directory that somebody else created.
      await mkdir(this.sessionDirectory, { mode: 0o700 });
      await makeDirectories(this.#workDirectory);
      this.#workDirectory = await realpath(this.#workDirectory);
      await using directory = await PinnedDirectory.open(this.#workDirectory);
      this.#identity = await directory.identity();
      const { uid, gid } = await directory.stat();
      this.#owner = { uid, gid };
    } catch (cause) {
      throw directoryNotCreated(cause);
    }
  }

  /**
   * The directory that is, or represents, the blocks' work directory. Resolved to a path without symbolic links once it
   * exists.
   */
  get workDirectory(): string {
    return this.#workDirectory;
  }

  /** Tells the work directory from everything that code may put in its place; see `PinnedDirectory`. */
  get identity(): string {
    return this.#identity;
  }

  /** The owner of the work directory. */
  get owner(): FileOwner {
    return this.#owner;
  }

  /**
   * From now on, makes the user that blocks run as the owner of everything that the session writes to the work
   * directory, and of the directory itself if it is the session's own.
   */
  async giveTo(owner: FileOwner): Promise<void> {
    this.#giveTo = owner;
    if (!this.given) await chown(this.#workDirectory, owner.uid, owner.gid);
  }

  /** The work directory's files, as blocks see them, except those that `isOwn`. */
  files(): DirectoryFiles {
    const owner = this.#giveTo;
    const isHidden = (file: string): boolean => this.isOwn(file);
    const identity = this.#identity;
    const newPart = (): string => this.newName("part");
    const given = owner === undefined ? {} : { owner };
    return new DirectoryFiles(this.#workDirectory, { isHidden, identity, newPart, ...given });
  }

  /** Marks the functions' package in `node_modules` as the session's own, because it contains host functions. */
  claimFunctionsPackage(): void {
    this.#hasPackage = true;
  }

  /** True if a relative path is one of the session's own files, or belongs to its functions package. */
  isOwn(relativePath: string): boolean {
    const { functionsModule } = this.#of;
    if (relativePath.startsWith(this.filePrefix)) return true;
    return this.#hasPackage && `${relativePath}/`.startsWith(`node_modules/${functionsModule}/`);
  }

  /** A unique name in the work directory. */
  newName(extension: string): string {
    return `${this.filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
  }

  /**
   * Writes a block to the work directory.
   *
   * @param elsewhere - write one without a file name to the session's own directory. Default: false.
   * @returns the file's absolute path.
   * @throws BackendUnavailableError for lack of space or permission; WorkspacePathError and others for the block's file
   * name.
   */
  async writeBlock({ language, code, filename }: BlockRun, extension: string, elsewhere = false): Promise<string> {
    const source = blockSource(language, code);
    if (filename !== undefined) await this.files().write(filename, source);
    if (filename !== undefined || !elsewhere) {
      return path.join(this.#workDirectory, filename ?? this.writeOwn(source, extension));
    }
    const file = path.join(this.sessionDirectory, this.newName(extension));
    explained(`The directory ${this.sessionDirectory}`, () => writeOwnFile(file, source, this.#giveTo));
    return file;
  }

  /**
   * Writes a file of the session's own into the work directory, under a unique name.
   *
   * @returns the name.
   * @throws BackendUnavailableError for lack of space or permission, or if the directory was replaced.
   */
  writeOwn(content: string, extension: string): string {
    const name = this.newName(extension);
    explained(`The work directory ${this.#workDirectory}`, () => this.#writeNew(name, content));
    return name;
  }

  #writeNew(name: string, content: string): void {
    if (process.platform !== "linux") {
      writeOwnFile(path.join(this.#workDirectory, name), content, this.#giveTo);
      return;
    }
    const directory = openSync(this.#workDirectory, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const { dev, ino } = fstatSync(directory, { bigint: true });
      if (this.#identity !== `${dev}:${ino}`) throw workspaceReplaced(this.#workDirectory);
      writeOwnFile(`/proc/self/fd/${directory}/${name}`, content, this.#giveTo);
    } finally {
      closeSync(directory);
    }
  }

  /** Returns the text of a file that `writeOwn` wrote. */
  async readOwn(name: string): Promise<string> {
    return readOwnFile(path.join(this.#workDirectory, name));
  }

  /** Removes a file that `writeOwn` wrote, or what code put in its place; never throws. */
  async removeOwn(name: string): Promise<void> {
    await removeOwnFile(path.join(this.#workDirectory, name));
  }

  /**
   * Removes everything temporary, and the functions package that this session created in a work directory that stays.
   *
   * @param goesOn - the session outlives this program, and still needs the package.
   */
  async remove(goesOn = false): Promise<void> {
    if (this.given && !goesOn) await removeFunctionsPackage(this.#workDirectory, this.#of.functionsModule, this.#of.id);
    await removeTree(this.sessionDirectory);
  }
}

/** Writes a file; an error says what could not be written to, and what to do. */
function explained(directory: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    if (FencedError.isInstance(cause)) throw cause;
    const problem = `${directory} could not be written to: ${String(cause)}`;
    throw new BackendUnavailableError(problem, { remedy: refusalRemedy(errorCode(cause)), cause });
  }
}

/**
 * Creates a new file of the executor's own where code can change things, or fails. It writes to the open file and
 * changes its owner by descriptor, so it does not matter what code puts in its place. Synchronous, because a block is
 * waiting for it and the thread pool would take longer than the disk.
 *
 * @param owner - the new owner. Default: this process's user.
 * @throws the system's error: `EEXIST` if anything has that name.
 */
export function writeOwnFile(place: string, content: string, owner?: FileOwner): void {
  const fd = openSync(place, newFile, 0o644);
  try {
    writeFileSync(fd, content);
    if (owner) fchownSync(fd, owner.uid, owner.gid);
  } catch (error) {
    unlinkSync(place);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads a file of the executor's own, which code may have replaced with a link, a named pipe or gigabytes of data.
 *
 * @throws the system's error, or InvalidInputError if it is no longer the file that was written.
 */
export async function readOwnFile(place: string | Buffer): Promise<string> {
  const handle = await openRegularFile(place, constants.O_RDONLY, String(place));
  try {
    if ((await handle.stat()).size > longestOwnFile) {
      throw new InvalidInputError(`${String(place)} was replaced by something too large`, {
        remedy: "Call stop() and start().",
      });
    }
    const content = handle.createReadStream({ autoClose: false, end: longestOwnFile });
    return await text(content);
  } finally {
    await handle.close();
  }
}

/**
 * Removes a file of the executor's own, or whatever code put in its place; never throws, since that would lose a
 * result.
 */
export async function removeOwnFile(place: string): Promise<void> {
  try {
    unlinkSync(place);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") await removeTree(place).catch(() => {});
  }
}

/**
 * Removes the package of JavaScript functions that `owner` created in a work directory, and its `node_modules` if that
 * contains nothing else. Leaves other files alone.
 */
export async function removeFunctionsPackage(workDirectory: string, module: string, owner: string): Promise<void> {
  try {
    await using directory = await PinnedDirectory.open(workDirectory);
    await using modules = await directory.child("node_modules");
    await using place = await modules.child(module);
    if ((await readOwnFile(place.entry(functionsPackageMarker))) !== owner) return;
    await removeEntry(modules, module);
    await rmdir(directory.entry("node_modules"));
  } catch {
    // It does not exist, code replaced it, or node_modules contains more.
  }
}
