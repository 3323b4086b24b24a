import { constants, type Stats } from "node:fs";
import { chmod, type FileHandle, lchown, lstat, open } from "node:fs/promises";
import path from "node:path";

// Undefined on Windows, which adds nothing to other flags.
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux's `O_PATH`, for which Node has no constant: opens even what may not be read. */
const pathOnly = 0o10_000_000;

/**
 * A directory that stays the same whatever code does to its path. On Linux it is an open descriptor, and its entries
 * are addressed through `/proc/self/fd`, like `openat` and `unlinkat` in other languages: links that code puts on the
 * way are not followed, and no path is too long. On other systems it is a path, and code can replace it.
 */
export class PinnedDirectory implements AsyncDisposable {
  readonly #handle: FileHandle | undefined;
  readonly #path: string;

  private constructor(place: string, handle?: FileHandle) {
    this.#path = place;
    this.#handle = handle;
  }

  /**
   * Opens a directory without following its last part.
   *
   * @throws the system's error: `ENOTDIR` or `ELOOP` if it is a link or something else.
   */
  static async open(place: string): Promise<PinnedDirectory> {
    if (process.platform === "linux") return new PinnedDirectory(place, await open(place, directoryFlags));
    if ((await lstat(place)).isDirectory()) return new PinnedDirectory(place);
    throw Object.assign(new Error(`${place} is not a directory`), { code: "ENOTDIR" });
  }

  /** The path for reaching an entry of this directory. The entry itself may be a link. */
  entry(name: string): string {
    return this.#handle ? `/proc/self/fd/${this.#handle.fd}/${name}` : path.join(this.#path, name);
  }

  /** Opens a directory in this one. */
  async child(name: string): Promise<PinnedDirectory> {
    return PinnedDirectory.open(this.entry(name));
  }

  /** Opens the directory that now contains this one, which may differ from the one that it was opened from. */
  async parent(): Promise<PinnedDirectory> {
    return PinnedDirectory.open(this.entry(".."));
  }

  /** Distinguishes this directory from all others that exist. */
  async identity(): Promise<string> {
    const { dev, ino } = this.#handle
      ? await this.#handle.stat({ bigint: true })
      : await lstat(this.#path, { bigint: true });
    return `${dev}:${ino}`;
  }

  async stat(): Promise<Stats> {
    return this.#handle ? this.#handle.stat() : lstat(this.#path);
  }

  async giveTo({ uid, gid }: { readonly uid: number; readonly gid: number }): Promise<void> {
    await (this.#handle ? this.#handle.chown(uid, gid) : lchown(this.#path, uid, gid));
  }

  /** Gives this process's user write permission on the directory. */
  async makeWritable(): Promise<void> {
    await (this.#handle ? this.#handle.chmod(0o700) : chmod(this.#path, 0o700));
  }

  /** Does the same for a directory in this one, which may not even be readable. */
  async makeChildWritable(name: string): Promise<void> {
    if (!this.#handle) return chmod(this.entry(name), 0o700);
    const handle = await open(this.entry(name), pathOnly | directoryFlags);
    try {
      await chmod(`/proc/self/fd/${handle.fd}`, 0o700);
    } finally {
      await handle.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }
}

/** True if a directory could not be opened because it is gone, or something else is in its place. */
export function isNoDirectory(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP", "EMLINK"].includes(errorCode(error) ?? "");
}

/** The `code` of a system error, such as `"ENOENT"`; `undefined` if it has none. */
export function errorCode(error: unknown): string | undefined {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : undefined;
}
