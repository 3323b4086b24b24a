import { mkdir } from "node:fs/promises";
import type { FileOwner, PinnedDirectory } from "./pinned-directory.ts";
import { errorCode } from "./workspace-errors.ts";

/** Maximum number of directories that stay open while nobody uses them. */
const mostIdle = 64;

interface Opened {
  readonly directory: Promise<PinnedDirectory>;
  users: number;
}

/** Options of `PinnedDirectories`. */
export interface PinnedDirectoriesOptions {
  /** Create missing directories. Default: false. */
  readonly create?: boolean;
  /** The owner of what is created. Default: this process's user. */
  readonly owner?: FileOwner | undefined;
}

/** Directories below a pinned one, kept open between uses. Links are never followed. Dispose of it when all uses have ended. */
export class PinnedDirectories implements AsyncDisposable {
  readonly #top: PinnedDirectory;
  readonly #options: PinnedDirectoriesOptions;
  /** By path; those that were used last are at the end. */
  readonly #opened = new Map<string, Opened>();

  constructor(top: PinnedDirectory, options: PinnedDirectoriesOptions = {}) {
    this.#top = top;
    this.#options = options;
  }

  /**
   * Calls `action` with the directory that an entry is in, and the entry's name.
   *
   * @param path - of the entry, normalized.
   * @throws the system's error: `ENOTDIR` or `ELOOP` if a directory on the way is a link or something else.
   */
  async within<T>(path: string, action: (directory: PinnedDirectory, name: string) => Promise<T>): Promise<T> {
    const slash = path.lastIndexOf("/");
    const name = path.slice(slash + 1);
    if (slash < 0) return action(this.#top, name);
    return this.#use(path.slice(0, slash), (directory) => action(directory, name));
  }

  async #use<T>(path: string, action: (directory: PinnedDirectory) => Promise<T>): Promise<T> {
    const opened = this.#opened.get(path) ?? { directory: this.#open(path), users: 0 };
    opened.users += 1;
    this.#opened.delete(path);
    this.#opened.set(path, opened);
    try {
      return await action(await opened.directory);
    } catch (error) {
      // The next use tries again.
      if (this.#opened.get(path) === opened) await opened.directory.catch(() => this.#opened.delete(path));
      throw error;
    } finally {
      opened.users -= 1;
      await this.#closeIdle();
    }
  }

  /** Opens it from the nearest directory above that is open, without recursion: trees may be as deep as a file system allows. */
  async #open(path: string): Promise<PinnedDirectory> {
    let above = path;
    let near: Opened | undefined;
    while (!near && above !== "") {
      above = above.slice(0, Math.max(0, above.lastIndexOf("/")));
      near = this.#opened.get(above);
    }
    const names = path.slice(near ? above.length + 1 : 0).split("/");
    if (near) near.users += 1;
    try {
      const from = near ? await near.directory : this.#top;
      let here = from;
      for (const name of names) {
        const last = here;
        try {
          here = await this.#child(last, name);
        } finally {
          if (last !== from) await close(last);
        }
      }
      return here;
    } finally {
      if (near) near.users -= 1;
    }
  }

  async #child(above: PinnedDirectory, name: string): Promise<PinnedDirectory> {
    const { create = false, owner } = this.#options;
    try {
      return await above.child(name);
    } catch (error) {
      if (!create || errorCode(error) !== "ENOENT") throw error;
    }
    await mkdir(above.entry(name), 0o700).catch((error: unknown) => {
      if (errorCode(error) !== "EEXIST") throw error;
    });
    const made = await above.child(name);
    if (owner) await made.giveTo(owner);
    return made;
  }

  async #closeIdle(): Promise<void> {
    let idle = this.#opened.size - mostIdle;
    for (const [path, { directory, users }] of this.#opened) {
      if (idle <= 0) return;
      if (users > 0) continue;
      idle -= 1;
      this.#opened.delete(path);
      await directory.then(close, () => {});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { directory } of this.#opened.values()) await directory.then(close, () => {});
    this.#opened.clear();
  }
}

async function close(directory: PinnedDirectory): Promise<void> {
  await directory[Symbol.asyncDispose]();
}
