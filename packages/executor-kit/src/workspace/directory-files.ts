import { constants, createReadStream, createWriteStream } from "node:fs";
import { lstat, mkdir, readdir, rm, stat, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import {
  FileNotFoundError,
  InvalidInputError,
  WorkspacePathError,
  type FileInfo,
  type WorkspaceFiles,
} from "@fenced/core";
import { asWorkspaceError, openDirectory, openFile, resolveInside, type FileOwner } from "./directory-handle.ts";
import { assertLocalFile } from "./local-file.ts";
import { normalizeWorkspacePath } from "./workspace-path.ts";

/** Without truncation, which is for the writer to do once it has seen that it does not read the same file. */
const writing = constants.O_WRONLY | constants.O_CREAT;

/** The files of a workspace that is a directory of this host. Symbolic links are not listed. */
export class DirectoryFiles implements WorkspaceFiles {
  readonly #root: string;
  readonly #isHidden: (relativePath: string) => boolean;
  readonly #owner: FileOwner | undefined;

  /**
   * @param root - the workspace's directory, which must exist when a method is called.
   * @param isHidden - tells the executor's own files, which are not listed, by their relative paths.
   * @param owner - whom to give what is written, where code runs as another user than this process; the process must
   * be root then. Default: it stays this process's.
   */
  constructor(root: string, isHidden: (relativePath: string) => boolean = () => false, owner?: FileOwner) {
    this.#root = root;
    this.#isHidden = isHidden;
    this.#owner = owner;
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const files: FileInfo[] = [];
    const directories = [normalizeWorkspacePath(directory)];
    for (const [index, each] of directories.entries()) {
      try {
        const inside = await this.#look(each, index === 0 ? directory : each);
        for (const file of inside.files) files.push(file);
        for (const below of inside.directories) directories.push(below);
      } catch (error) {
        // What is gone by now, or was swapped for a link, is not there to be listed.
        const gone = FileNotFoundError.isInstance(error) || WorkspacePathError.isInstance(error);
        if (index === 0 || !gone) throw error;
      }
    }
    return files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  async read(file: string): Promise<Uint8Array> {
    return this.#withFile(file, constants.O_RDONLY, async (handle) => new Uint8Array(await handle.readFile()));
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    await this.#withFile(file, writing, async (handle) => {
      await handle.truncate();
      await handle.writeFile(data);
    });
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
      await rm(directory.entry(name), { recursive: true });
    } catch (error) {
      throw asWorkspaceError(error, file);
    }
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    for (const local of localPaths) await assertLocalFile(local);
    for (const local of localPaths) {
      await this.#withFile(path.basename(local), writing, async (handle) => {
        if (await isSameFile(handle, local)) return;
        await handle.truncate();
        await pipeline(createReadStream(local), handle.createWriteStream());
      });
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const copy = path.resolve(toDirectory, normalizeWorkspacePath(file));
      await this.#withFile(file, constants.O_RDONLY, async (handle) => {
        if (await isSameFile(handle, copy)) return;
        await mkdir(path.dirname(copy), { recursive: true });
        await pipeline(handle.createReadStream(), createWriteStream(copy));
      });
      copies.push(copy);
    }
    return copies;
  }

  /** The directories and regular files in one directory, by paths relative to the workspace. */
  async #look(relative: string, given: string): Promise<{ files: FileInfo[]; directories: string[] }> {
    await using opened = await openDirectory(this.#root, partsOf(relative), { given, create: false });
    const entries = await readdir(opened.entry("."), { withFileTypes: true }).catch((error: unknown) => {
      throw asWorkspaceError(error, given);
    });
    const pathOf = (name: string): string => path.posix.join(relative, name);
    const infos = entries.map(async (entry): Promise<FileInfo | undefined> => {
      const file = pathOf(entry.name);
      if (!entry.isFile() || this.#isHidden(file)) return undefined;
      const stats = await lstat(opened.entry(entry.name)).catch(() => undefined);
      return stats && { path: file, size: stats.size };
    });
    return {
      files: (await Promise.all(infos)).filter((info) => info !== undefined),
      directories: entries.filter((entry) => entry.isDirectory()).map((entry) => pathOf(entry.name)),
    };
  }

  async #withFile<T>(file: string, flags: number, use: (handle: FileHandle) => Promise<T>): Promise<T> {
    const create = (flags & constants.O_CREAT) !== 0;
    const parts = await resolveInside(this.#root, partsOf(normalizeWorkspacePath(file)), file);
    const name = parts.at(-1);
    if (name === undefined) {
      throw new InvalidInputError(`${JSON.stringify(file)} is a directory`, { remedy: "Name a file." });
    }
    await using directory = await openDirectory(this.#root, parts.slice(0, -1), {
      given: file,
      create,
      ...(this.#owner === undefined ? {} : { owner: this.#owner }),
    });
    const handle = await openFile(directory, name, { given: file, flags });
    try {
      if (create && this.#owner) await handle.chown(this.#owner.uid, this.#owner.gid);
      return await use(handle);
    } finally {
      // A stream over the handle may have closed it already.
      await handle.close().catch(() => {});
    }
  }
}

function partsOf(normalPath: string): string[] {
  return normalPath === "." ? [] : normalPath.split("/");
}

async function isSameFile(handle: FileHandle, file: string): Promise<boolean> {
  const other = await stat(file, { bigint: true }).catch(() => undefined);
  const one = await handle.stat({ bigint: true });
  return one.dev === other?.dev && one.ino === other.ino;
}
