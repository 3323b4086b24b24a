import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, rename, unlink, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { ServiceFailure } from "../service-failure.ts";
import { hasCode, PinnedDirectory } from "./pinned-directory.ts";
import { deepest, outside, Way } from "./way.ts";

/** A file or directory of a session, as the API describes it. */
export interface FileResource {
  readonly name: string;
  readonly type: "file" | "directory";
  readonly contentType: string;
  readonly sizeInBytes: number;
  readonly lastModifiedAt: string;
  /** Its directory, from the session's root: `/`, `/sub`. */
  readonly directory: string;
}

/** Maximum number of entries in one list. */
const mostEntries = 20_000;
/** Milliseconds for which code that keeps creating files can keep a call busy. */
const patienceMs = 60_000;
// Non-blocking, because a named pipe that code left there would block the reader or writer forever.
const carefully = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The files of one session. No path and no symbolic link leads out of them, even if code swaps it in the meantime. */
export class SessionDirectory {
  readonly #root: string;
  readonly #uploads: string;

  /**
   * @param root - an absolute path of the host.
   * @param uploads - a directory next to it that the session cannot see, in which uploads wait until they are
   * complete.
   */
  constructor(root: string, uploads: string) {
    this.#root = root;
    this.#uploads = uploads;
  }

  /**
   * Files and directories in `directory`, and below it if `recursive`; symbolic links are left out.
   *
   * @throws ServiceFailure if there are more than 20,000.
   */
  async list(directory: string, recursive: boolean): Promise<FileResource[]> {
    const found: FileResource[] = [];
    const signal = AbortSignal.timeout(patienceMs);
    await this.#at(partsOf(directory), directory, { create: false }, async (way) => {
      await this.#collect(way, { found, recursive, signal });
    });
    return found;
  }

  /** @throws ServiceFailure if it does not exist. */
  async describe(file: string): Promise<FileResource> {
    return this.#inParent(file, { create: false, followLast: true }, async (way, name) => resourceOf(way, name));
  }

  /** @throws ServiceFailure if it is not a regular file. */
  async openToRead(file: string): Promise<FileHandle> {
    return this.#inParent(file, { create: false, followLast: true }, async (way, name) => {
      const handle = await open(way.top.entry(name), constants.O_RDONLY | carefully);
      if ((await handle.stat()).isFile()) return handle;
      await handle.close();
      throw notAFile(file);
    });
  }

  /**
   * Puts a file into the session, replacing an older one, once all of it has arrived: code never sees a part of it,
   * and an existing file stays if the content breaks off. Creates parent directories.
   */
  async write(file: string, content: AsyncIterable<Buffer>): Promise<FileResource> {
    const whole = path.join(this.#uploads, randomUUID());
    try {
      const handle = await open(whole, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666);
      await pipeline(content, handle.createWriteStream());
      return await this.#inParent(file, { create: true, followLast: true }, async (way, name) => {
        const there = await lstat(way.top.entry(name)).catch(() => undefined);
        if (there && !there.isFile()) throw notAFile(file);
        await rename(whole, way.top.entry(name));
        return resourceOf(way, name);
      });
    } finally {
      await unlink(whole).catch(() => {});
    }
  }

  /** Removes a file, a symbolic link, or a directory with everything in it. */
  async remove(file: string): Promise<void> {
    await this.#inParent(file, { create: false, followLast: false }, async ({ top }, name) =>
      top.remove(name, AbortSignal.timeout(patienceMs)),
    );
  }

  /** Removes everything, including the directory. */
  async destroy(): Promise<void> {
    await using parent = await PinnedDirectory.open(path.dirname(this.#root));
    await parent.remove(path.basename(this.#root), AbortSignal.timeout(patienceMs)).catch((error: unknown) => {
      if (!hasCode(error, "ENOENT")) throw error;
    });
  }

  async #collect(
    way: Way,
    {
      found,
      recursive,
      signal,
    }: { readonly found: FileResource[]; readonly recursive: boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    const names: string[] = [];
    for await (const name of way.top.names()) {
      // The API is JSON, which cannot express other names.
      if (typeof name === "string" && found.length + names.push(name) > mostEntries) throw tooMany();
      if (signal.aborted) throw tooMany();
    }
    for (const name of names.toSorted()) {
      const resource = await resourceOf(way, name).catch(() => undefined);
      if (!resource) continue;
      if (found.push(resource) > mostEntries) throw tooMany();
      if (!recursive || resource.type === "file" || way.depth >= deepest) continue;
      // A directory that has been deleted or swapped for a link in the meantime has nothing to list.
      const entered = await way.enter(name).catch(() => false);
      if (entered === false) continue;
      await this.#collect(way, { found, recursive, signal });
      await way.leave();
    }
  }

  /** Calls `use` with the directory that a file is in, and its name there. */
  async #inParent<T>(
    file: string,
    { create, followLast }: { readonly create: boolean; readonly followLast: boolean },
    use: (way: Way, name: string) => Promise<T>,
  ): Promise<T> {
    const parts = partsOf(file);
    const name = parts.pop() ?? "";
    if (name === "" || name === "..") throw new ServiceFailure(400, "InvalidPath", "The root is not a file.");
    return this.#at(parts, file, { create, ...(followLast ? { last: name } : {}) }, async (way, last) =>
      use(way, last ?? name),
    );
  }

  /** Walks to a directory, and calls `use` while all directories on the way are held open. */
  async #at<T>(
    parts: readonly string[],
    given: string,
    { create, last }: { readonly create: boolean; readonly last?: string },
    use: (way: Way, last: string | undefined) => Promise<T>,
  ): Promise<T> {
    try {
      await using way = await Way.from(this.#root);
      const end = await way.walk([...parts, ...(last === undefined ? [] : [last])], {
        create,
        stopAtLast: last !== undefined,
      });
      return await use(way, end);
    } catch (error) {
      throw asFailure(error, given);
    }
  }
}

/** @throws ServiceFailure if it is neither a file nor a directory. */
async function resourceOf(way: Way, name: string): Promise<FileResource> {
  const stats = await lstat(way.top.entry(name));
  const isDirectory = stats.isDirectory();
  if (!isDirectory && !stats.isFile()) throw notAFile(name);
  return {
    name,
    type: isDirectory ? "directory" : "file",
    contentType: isDirectory ? "" : "application/octet-stream",
    sizeInBytes: isDirectory ? 0 : stats.size,
    lastModifiedAt: stats.mtime.toISOString(),
    directory: way.path,
  };
}

/** @throws ServiceFailure if the path itself leads outside, without any link. */
function partsOf(given: string): string[] {
  const normal = path.posix.normalize(given.replace(/^\/mnt\/data(?=\/|$)/, "").replace(/^\/+/, "") || ".");
  if (normal === ".." || normal.startsWith("../") || given.includes("\0")) throw outside();
  return normal.split("/").filter((part) => part !== "" && part !== ".");
}

function notAFile(file: string): ServiceFailure {
  return new ServiceFailure(400, "NotAFile", `${file} is not a regular file.`);
}

function tooMany(): ServiceFailure {
  return new ServiceFailure(400, "TooManyFiles", `The list has more than ${mostEntries} entries, or takes too long.`);
}

function asFailure(error: unknown, file: string): unknown {
  if (hasCode(error, "ENOENT")) return new ServiceFailure(404, "FileNotFound", `There is no file ${file}.`);
  if (hasCode(error, "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "ENXIO")) return notAFile(file);
  if (hasCode(error, "ELOOP")) return outside();
  if (error instanceof Error && error.name === "TimeoutError") {
    return new ServiceFailure(409, "FileBusy", `The session's code keeps changing ${file}.`);
  }
  if (hasCode(error, "ENAMETOOLONG")) {
    return new ServiceFailure(400, "InvalidFileName", `The name ${file.slice(0, 100)} is too long.`);
  }
  return error;
}
