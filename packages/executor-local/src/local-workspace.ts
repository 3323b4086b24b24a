import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { functionsPackageMarker } from "@fenced/executor-kit";

/** The directories of a session, and the files that it puts into them. */
export class LocalWorkspace {
  /** Deleted with the session: pipes, function modules, and the workspace if none was given. */
  readonly sessionDirectory: string;
  /** Where blocks run. Without symbolic links. */
  readonly workDirectory: string;
  /** What all of the session's own files in the work directory are called at first. */
  readonly filePrefix: string;

  private constructor(sessionDirectory: string, workDirectory: string, owner: string) {
    this.sessionDirectory = sessionDirectory;
    this.workDirectory = workDirectory;
    this.filePrefix = `.fenced-${owner.slice(0, 8)}-`;
  }

  /**
   * Makes the directories.
   *
   * @param given - the user's work directory; made if missing.
   * @param owner - names the executor; unique in the world.
   */
  static async open(given: string | undefined, owner: string): Promise<LocalWorkspace> {
    const sessionDirectory = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-"));
    try {
      const workDirectory = given ?? path.join(sessionDirectory, "workspace");
      await mkdir(workDirectory, { recursive: true });
      await mkdir(path.join(sessionDirectory, "functions"));
      return new LocalWorkspace(sessionDirectory, await realpath(workDirectory), owner);
    } catch (error) {
      await rm(sessionDirectory, { recursive: true, force: true });
      throw error;
    }
  }

  get functionsDirectory(): string {
    return path.join(this.sessionDirectory, "functions");
  }

  get packagesDirectory(): string {
    return path.join(this.sessionDirectory, "packages");
  }

  /**
   * Whether a relative path is one of the session's own files.
   *
   * @param functionsPackage - the package in `node_modules` that is the session's; `undefined`: none.
   */
  isOwn(relativePath: string, functionsPackage: string | undefined): boolean {
    if (relativePath.startsWith(this.filePrefix)) return true;
    return functionsPackage !== undefined && relativePath.startsWith(`node_modules/${functionsPackage}/`);
  }

  /** Writes a block that has no file name. */
  async writeTemporary(source: string, extension: string): Promise<string> {
    const file = path.join(this.workDirectory, `${this.filePrefix}${randomUUID().slice(0, 12)}.${extension}`);
    try {
      await writeFile(file, source, { flag: "wx" });
      return file;
    } catch (cause) {
      throw new BackendUnavailableError(`The block cannot be written to the work directory: ${String(cause)}`, {
        remedy: "See that the directory is still there and the disk not full; stop() and start() make a fresh one.",
        cause,
      });
    }
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
    // A process that was just killed may still have been writing: such a directory is not empty at once.
    const remove = async (): Promise<void> =>
      rm(this.sessionDirectory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    await remove().catch(async () => {
      await makeWritable(this.sessionDirectory);
      await remove();
    });
  }
}

/** What stands in a directory without write permission, such as those of Go's module cache, cannot be removed. */
async function makeWritable(directory: string): Promise<void> {
  await chmod(directory, 0o700);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(path.join(directory, entry.name));
  }
}
