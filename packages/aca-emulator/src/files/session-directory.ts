import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, readlink, rm, stat, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { ServiceFailure } from "../service-failure.ts";

/** A file or directory of a session, as the API describes it. */
export interface FileResource {
  readonly name: string;
  readonly type: "file" | "directory";
  readonly contentType: string;
  readonly sizeInBytes: number;
  readonly lastModifiedAt: string;
  /** The directory that it stands in, from the session's root: `/`, `/sub`. */
  readonly directory: string;
}

/** The largest file that can be uploaded, in bytes. */
export const uploadLimit: number = 128 * 1024 * 1024;

/** What code calls the root of its files. */
const mountPoint = "/mnt/data";
// Non-blocking, because a named pipe that code left there would hold the reader or writer for ever.
const carefully = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const writing = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | carefully;
const reading = constants.O_RDONLY | carefully;

/** The files of one session. No path and no symbolic link leads out of them. */
export class SessionDirectory {
  /** An absolute path of the host. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Files and directories in `directory`, and below it if `recursive`; symbolic links are left out. */
  async list(directory: string, recursive: boolean): Promise<FileResource[]> {
    const top = await this.#resolve(partsOf(directory), true);
    const entries = await readdir(top, { withFileTypes: true }).catch(asFailure(directory));
    const found: FileResource[] = [];
    for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      if (!entry.isFile() && !entry.isDirectory()) continue;
      const resource = await this.#describe(path.join(top, entry.name)).catch(() => undefined);
      if (resource) found.push(resource);
      if (!recursive || !entry.isDirectory()) continue;
      found.push(...(await this.list(path.posix.join(directory, entry.name), true)));
    }
    return found;
  }

  async describe(file: string): Promise<FileResource> {
    return this.#describe(await this.#resolve(partsOf(file), true)).catch(asFailure(file));
  }

  async openToRead(file: string): Promise<FileHandle> {
    return openFile(await this.#resolve(partsOf(file), true), reading, file);
  }

  /** Opens a file to be written, over an older one; its parent directories are made. */
  async openToWrite(file: string): Promise<FileHandle> {
    const place = await this.#resolve(partsOf(file), true);
    await this.#makeParents(place).catch(asFailure(file));
    return openFile(place, writing, file);
  }

  /** Removes a file, a symbolic link, or a directory with all that is in it. */
  async remove(file: string): Promise<void> {
    const place = await this.#resolve(partsOf(file), false);
    if (place === this.root) throw new ServiceFailure(400, "InvalidPath", "The root cannot be removed.");
    await rm(place, { recursive: true }).catch(asFailure(file));
  }

  async #describe(place: string): Promise<FileResource> {
    const stats = await stat(place);
    const relative = path.relative(this.root, path.dirname(place)).split(path.sep).join("/");
    return {
      name: path.basename(place),
      type: stats.isDirectory() ? "directory" : "file",
      contentType: stats.isDirectory() ? "" : "application/octet-stream",
      sizeInBytes: stats.isDirectory() ? 0 : stats.size,
      lastModifiedAt: stats.mtime.toISOString(),
      directory: `/${relative}`,
    };
  }

  /** Where `parts` lead to, symbolic links followed as the code would, the last one only if `followLast`. */
  async #resolve(parts: readonly string[], followLast: boolean): Promise<string> {
    const left = [...parts];
    let place = this.root;
    for (let links = 0; left.length > 0;) {
      const part = left.shift() ?? "";
      if (part === "..") place = this.#inside(path.dirname(place));
      if (part === "" || part === "." || part === "..") continue;
      const next = path.join(place, part);
      const isLink = await lstat(next).then(
        (stats) => stats.isSymbolicLink() && (followLast || left.length > 0),
        () => false,
      );
      if (!isLink) {
        place = next;
        continue;
      }
      if (++links > 40) throw outside();
      const target = await readlink(next);
      if (path.isAbsolute(target)) {
        if (target !== mountPoint && !target.startsWith(`${mountPoint}/`)) throw outside();
        place = this.root;
      }
      left.unshift(...target.replace(/^\/mnt\/data/, "").split("/"));
    }
    return place;
  }

  /** Makes the directories that lack on the way to a file, but not the root, which is gone when the session has ended. */
  async #makeParents(place: string): Promise<void> {
    let made = this.root;
    for (const part of path.relative(this.root, path.dirname(place)).split(path.sep)) {
      made = path.join(made, part);
      if (made === this.root) continue;
      await mkdir(made).catch((error: unknown) => {
        if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      });
    }
  }

  #inside(place: string): string {
    if (place === this.root || place.startsWith(`${this.root}${path.sep}`)) return place;
    throw outside();
  }
}

/** @throws ServiceFailure, with the name `file`, if what stands at `place` is not a file. */
async function openFile(place: string, flags: number, file: string): Promise<FileHandle> {
  const handle = await open(place, flags, 0o666).catch(asFailure(file));
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw new ServiceFailure(400, "NotAFile", `${file} is not a file.`);
}

/** @throws ServiceFailure if the path names a place outside without the help of a link. */
function partsOf(given: string): string[] {
  const normal = path.posix.normalize(given.replace(/^\/mnt\/data(?=\/|$)/, "").replace(/^\/+/, "") || ".");
  if (normal === ".." || normal.startsWith("../") || given.includes("\0")) throw outside();
  return normal.split("/");
}

function outside(): ServiceFailure {
  return new ServiceFailure(400, "InvalidPath", `The path leads out of ${mountPoint}.`);
}

function asFailure(file: string): (error: unknown) => never {
  return (error) => {
    const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") throw new ServiceFailure(404, "FileNotFound", `There is no file ${file}.`);
    if (code === "ENOTDIR" || code === "EISDIR" || code === "EEXIST") {
      throw new ServiceFailure(400, "NotAFile", `A part of ${file} is not what it would have to be.`);
    }
    if (code === "ELOOP") throw outside();
    if (code === "ENXIO") throw new ServiceFailure(400, "NotAFile", `${file} is not a file.`);
    if (code === "ENAMETOOLONG") throw new ServiceFailure(400, "InvalidFileName", `The name ${file} is too long.`);
    throw error;
  };
}
