import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open, opendir, rename, stat, unlink } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import type { ObjectStorage, StoredObject } from "../store/object-storage.ts";

/** Incomplete files; those of killed programs stay here until a sweep. */
const unfinished = "unfinished";
const unfinishedMs = 3_600_000;
// Workspaces contain secrets.
const [directoryMode, fileMode] = [0o700, 0o600];

/** Objects as files of a directory. Several programs may use it, also over a network file system that renames atomically. */
export class DirectoryStorage implements ObjectStorage {
  readonly name: string;
  readonly #root: string;
  /** Directories with new names that may not have reached the disk. */
  readonly #changed = new Set<string>();

  /** @param root - an absolute path; created when something is written. */
  constructor(root: string) {
    this.#root = root;
    this.name = `the directory ${root}`;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const target = this.#pathOf(key);
    const part = path.join(this.#root, unfinished, randomUUID());
    await this.#guard(`${key} could not be written`, async () => {
      await orAfter(
        () => writeNew(part, bytes),
        () => makeDirectory(path.dirname(part)),
      );
      try {
        await orAfter(
          () => rename(part, target),
          () => makeDirectory(path.dirname(target)),
        );
      } catch (error) {
        await unlink(part).catch(() => {});
        throw error;
      }
    });
    this.#changed.add(path.dirname(target));
  }

  get(key: string, maxBytes: number): Promise<Uint8Array | "larger" | undefined> {
    return this.#guard(`${key} could not be read`, () =>
      unlessMissing(async () => {
        await using handle = await open(this.#pathOf(key), constants.O_RDONLY | constants.O_NOFOLLOW);
        const { size } = await handle.stat();
        if (size > maxBytes) return "larger";
        const bytes = new Uint8Array(size);
        for (let at = 0; at < size;) {
          const { bytesRead } = await handle.read(bytes, at, size - at, at);
          if (bytesRead === 0) return bytes.subarray(0, at);
          at += bytesRead;
        }
        return bytes;
      }),
    );
  }

  size(key: string): Promise<number | undefined> {
    return this.#guard(`${key} could not be looked at`, () =>
      unlessMissing(async () => (await stat(this.#pathOf(key))).size),
    );
  }

  async *list(folder: string): AsyncGenerator<StoredObject, void, void> {
    const waiting = [folder];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const prefix = next;
      const directory = await this.#guard(`${prefix} could not be listed`, () =>
        unlessMissing(() => opendir(this.#pathOf(prefix), { bufferSize: 256 })),
      );
      for await (const entry of directory ?? []) {
        if (entry.isDirectory()) waiting.push(`${prefix}${entry.name}/`);
        if (!entry.isFile()) continue;
        const stats = await unlessMissing(() => stat(this.#pathOf(`${prefix}${entry.name}`)));
        if (stats) yield { key: `${prefix}${entry.name}`, size: stats.size, modifiedAt: stats.mtimeMs };
      }
    }
  }

  async delete(key: string): Promise<void> {
    await this.#guard(`${key} could not be deleted`, () => unlessMissing(() => unlink(this.#pathOf(key))));
    this.#changed.add(path.dirname(this.#pathOf(key)));
  }

  /** Renames reach the disk with their directories. */
  async flush(): Promise<void> {
    const directories = [...this.#changed];
    this.#changed.clear();
    // Windows cannot open directories.
    if (process.platform === "win32") return;
    await this.#guard("what was written could not be saved", () =>
      Promise.all(
        directories.map((directory) =>
          unlessMissing(async () => {
            await using handle = await open(directory, constants.O_RDONLY);
            await handle.sync();
          }),
        ),
      ),
    );
  }

  async tidy(now: number): Promise<void> {
    for await (const { key, modifiedAt } of this.list(`${unfinished}/`)) {
      if (modifiedAt < now - unfinishedMs) await this.delete(key);
    }
  }

  #pathOf(key: string): string {
    return path.join(this.#root, ...key.split("/"));
  }

  async #guard<T>(problem: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      throw new BackendUnavailableError(
        `Checkpoints in ${this.#root}: ${problem} (${codeOf(cause) ?? String(cause)})`,
        {
          remedy: "Check that the directory belongs to this program's user, and that its disk has space.",
          cause,
        },
      );
    }
  }
}

async function writeNew(file: string, bytes: Uint8Array): Promise<void> {
  await using handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, fileMode);
  try {
    await handle.writeFile(bytes);
    if (bytes.length > 0) await handle.sync();
  } catch (error) {
    await unlink(file).catch(() => {});
    throw error;
  }
}

async function makeDirectory(directory: string): Promise<void> {
  await makeDirectories(directory, { mode: directoryMode });
}

/** Tries again after `repair` if something is missing. */
async function orAfter(action: () => Promise<void>, repair: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    await repair();
    await action();
  }
}

async function unlessMissing<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return undefined;
  }
}

function codeOf(error: unknown): string | undefined {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : undefined;
}
