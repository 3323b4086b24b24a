import { randomUUID } from "node:crypto";
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { chown, mkdir, mkdtemp, readFile, realpath, rm, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { functionsPackageMarker, type FileOwner } from "@fenced/executor-kit";

/** The directories of this host that a session uses. */
export class HostWorkspace {
  /** Deleted with the session. */
  readonly sessionDirectory: string;
  /** The directory that is, or stands for, the blocks' work directory. Without symbolic links. */
  readonly workDirectory: string;
  /** The work directory is the user's, and is kept. */
  readonly given: boolean;
  /** What all of the session's own files in the work directory are called at first. */
  readonly filePrefix: string;
  /** Whom the work directory belongs to. */
  readonly owner: FileOwner;
  #giveTo: FileOwner | undefined;

  private constructor(places: { session: string; work: string; given: boolean; owner: FileOwner }, id: string) {
    this.sessionDirectory = places.session;
    this.workDirectory = places.work;
    this.given = places.given;
    this.owner = places.owner;
    this.filePrefix = ownFilePrefix(id);
  }

  /**
   * Makes the directories.
   *
   * @param given - the user's work directory; made if missing.
   * @param id - names the executor; unique in the world.
   * @throws BackendUnavailableError if they cannot be made.
   */
  static async open(given: string | undefined, id: string): Promise<HostWorkspace> {
    try {
      return await openWorkspace(given, async (places) => new HostWorkspace(places, id));
    } catch (cause) {
      throw new BackendUnavailableError(`The work directory cannot be made: ${String(cause)}`, {
        remedy: "Give a `workDir` that can be written to, and see that the disk is not full.",
        cause,
      });
    }
  }

  /** Whom the session gives what it writes; `undefined`: it stays this process's. */
  get fileOwner(): FileOwner | undefined {
    return this.#giveTo;
  }

  /**
   * Gives all that the session writes to the work directory from now on to the user that blocks run as, and the directory
   * too if it is the session's own.
   */
  async giveTo(owner: FileOwner): Promise<void> {
    this.#giveTo = owner;
    if (!this.given) await chown(this.workDirectory, owner.uid, owner.gid);
  }

  /** Writes a file of the session's own, under a name that nobody else has. */
  writeOwn(text: string, extension: string): string {
    const name = `${this.filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
    const file = path.join(this.workDirectory, name);
    // At once: a block waits for it, and the thread pool would take longer than the disk.
    writeFileSync(file, text, { flag: "wx" });
    if (this.#giveTo) chownSync(file, this.#giveTo.uid, this.#giveTo.gid);
    return name;
  }

  /** The text of a file that `writeOwn` wrote. */
  async readOwn(name: string): Promise<string> {
    return readFile(path.join(this.workDirectory, name), "utf8");
  }

  /** Removes a file that `writeOwn` wrote. */
  removeOwn(name: string): void {
    rmSync(path.join(this.workDirectory, name), { force: true });
  }

  /** Removes the JavaScript functions' package, if `owner` made it, and its `node_modules` if nothing else is in it. */
  async removeFunctionsPackage(functionsModule: string, owner: string): Promise<void> {
    const modules = path.join(this.workDirectory, "node_modules");
    const place = path.join(modules, functionsModule);
    const marker = await readFile(path.join(place, functionsPackageMarker), "utf8").catch(() => undefined);
    if (marker !== owner) return;
    await rm(place, { recursive: true, force: true });
    await rmdir(modules).catch(() => {});
  }

  async remove(): Promise<void> {
    await rm(this.sessionDirectory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** What the own files of an executor in a work directory are called at first. */
function ownFilePrefix(id: string): string {
  return `.fenced-${id.slice(0, 8)}-`;
}

async function openWorkspace<T>(
  given: string | undefined,
  make: (places: { session: string; work: string; given: boolean; owner: FileOwner }) => Promise<T>,
): Promise<T> {
  const session = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-"));
  try {
    const work = given ?? path.join(session, "workspace");
    await mkdir(work, { recursive: true });
    const { uid, gid } = await stat(work);
    return await make({ session, work: await realpath(work), given: given !== undefined, owner: { uid, gid } });
  } catch (error) {
    await rm(session, { recursive: true, force: true });
    throw error;
  }
}
