import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { chmod, lstat, open, opendir, rename, rmdir, unlink, type FileHandle } from "node:fs/promises";
import path from "node:path";

// On Windows these are undefined, which has no effect in a bitwise OR.
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux's `O_PATH`, for which Node has no constant: opens even entries that may not be read. */
const withoutReading = 0o10000000;

/**
 * An open directory. On Linux its entries are reached through the descriptor, so code that swaps a directory for a
 * link in the meantime cannot lead the host out of it. Elsewhere they are reached by path.
 */
export class PinnedDirectory implements AsyncDisposable {
  readonly #place: string;
  readonly #handle: FileHandle | undefined;

  private constructor(place: string, handle: FileHandle | undefined) {
    this.#place = place;
    this.#handle = handle;
  }

  /** Opens a directory; the last part of the path must not be a link. */
  static async open(place: string): Promise<PinnedDirectory> {
    if (process.platform === "linux") return new PinnedDirectory(place, await open(place, directoryFlags));
    if ((await lstat(place)).isDirectory()) return new PinnedDirectory(place, undefined);
    throw Object.assign(new Error(`${place} is not a directory`), { code: "ENOTDIR" });
  }

  /** The path for reaching an entry; `name` as text, or as bytes if it is not UTF-8. */
  entry(name: string): string;
  entry(name: string | Buffer): string | Buffer;
  entry(name: string | Buffer): string | Buffer {
    if (typeof name !== "string") return Buffer.concat([Buffer.from(this.entry("")), name]);
    return this.#handle ? `/proc/self/fd/${this.#handle.fd}/${name}` : `${this.#place}${path.sep}${name}`;
  }

  /** Opens a directory in this one. */
  async open(name: string): Promise<PinnedDirectory> {
    return PinnedDirectory.open(this.entry(name));
  }

  /** The names of its entries, as they are read: code may also use bytes that are not UTF-8. */
  async *names(): AsyncGenerator<string | Buffer, void, void> {
    // One character for each byte.
    for await (const { name } of await opendir(this.entry("."), { bufferSize: 256, encoding: "latin1" })) {
      const bytes = Buffer.from(name, "latin1");
      yield isUtf8(bytes) ? bytes.toString() : bytes;
    }
  }

  /**
   * Removes an entry, whatever it is, and everything in it. Follows no links, and works at any depth without
   * recursion: each directory is emptied into this one before it is removed.
   *
   * @param signal - ends the removal, which would never end while code keeps creating files.
   */
  async remove(name: string, signal: AbortSignal): Promise<void> {
    if (await this.#removeOne(name)) return;
    const removed = `.removed-${randomUUID()}`;
    // It disappears at once, and is out of the way of anything created under the old name in the meantime.
    await rename(this.entry(name), this.entry(removed));
    const left = [removed];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      signal.throwIfAborted();
      if (await this.#removeOne(next).catch(isGone)) continue;
      left.push(next);
      for (const moved of await this.#empty(next, signal)) left.push(moved);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }

  /** @returns false if it is a directory that is not empty. */
  async #removeOne(name: string | Buffer): Promise<boolean> {
    try {
      await unlink(this.entry(name));
      return true;
    } catch (error) {
      // Linux reports EISDIR, other systems EPERM.
      if (!hasCode(error, "EISDIR", "EPERM")) throw error;
    }
    try {
      await rmdir(this.entry(name));
      return true;
    } catch (error) {
      if (!hasCode(error, "ENOTEMPTY", "EEXIST")) throw error;
      return false;
    }
  }

  /** Removes the files in a directory, and moves its directories here. @returns their new names. */
  async #empty(name: string, signal: AbortSignal): Promise<string[]> {
    const moved: string[] = [];
    try {
      await using directory = await this.#openToEmpty(name);
      for await (const each of directory.names()) {
        signal.throwIfAborted();
        if (await directory.#removeOne(each).catch(isGone)) continue;
        const place = `.removed-${randomUUID()}`;
        await rename(directory.entry(each), this.entry(place));
        moved.push(place);
      }
    } catch (error) {
      // It was swapped in the meantime: the next attempt shows for what.
      if (!hasCode(error, "ENOENT", "ENOTDIR", "ELOOP")) throw error;
    }
    return moved;
  }

  async #openToEmpty(name: string): Promise<PinnedDirectory> {
    try {
      return await this.open(name);
    } catch (error) {
      if (process.platform !== "linux" || !hasCode(error, "EACCES")) throw error;
    }
    const closed = await open(this.entry(name), directoryFlags | withoutReading);
    try {
      await chmod(`/proc/self/fd/${closed.fd}`, 0o700);
    } finally {
      await closed.close();
    }
    return this.open(name);
  }
}

function isGone(error: unknown): boolean {
  if (hasCode(error, "ENOENT")) return true;
  throw error;
}

/** Whether a file system error has one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}
