import { ByteQueue, InvalidInputError, type FileEntry } from "@fenced/core";

/**
 * Limits on what this process reads from a workspace into memory. The code decides what is there, so none of it can be
 * trusted.
 */
export interface FileLimits {
  /** Maximum size of a file for `files.read()` in bytes. */
  readonly readBytes: number;
  /** Maximum number of entries that `files.list()` looks at, including hidden files and directories. */
  readonly listEntries: number;
  /** Maximum total length of all paths in one listing in characters, since code can make each path very long. */
  readonly listCharacters: number;
}

/**
 * The limits of every executor: far above what programs normally leave behind, far below what would overload a host.
 */
export const fileLimits: FileLimits = {
  readBytes: 536_870_912,
  listEntries: 500_000,
  listCharacters: 67_108_864,
};

/**
 * Collects the content of a file for `files.read()`. Stops reading as soon as there is too much.
 *
 * @param file - the path as the caller gave it, for errors.
 * @throws InvalidInputError if there is more than `limits.readBytes`.
 */
export async function collectContent(
  file: string,
  content: AsyncIterable<Uint8Array>,
  { readBytes }: Pick<FileLimits, "readBytes"> = fileLimits,
): Promise<Uint8Array> {
  const bytes = new ByteQueue();
  for await (const chunk of content) {
    if (bytes.length + chunk.length > readBytes) throw tooLarge(file, readBytes);
    bytes.add(chunk);
  }
  return bytes.take();
}

/** The error for a file that is larger than `maxBytes`, the limit for reading it into memory. */
export function tooLarge(file: string, maxBytes: number): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} is larger than ${maxBytes} bytes, the limit of read()`, {
    remedy:
      "Use `files.readStream()`, which reads any part of a file of any size, or `files.download()`, which copies it to disk.",
  });
}

/** Builds the list that `files.list()` returns. */
export class FileListing {
  readonly #limits: FileLimits;
  readonly #directory: string;
  readonly #files: FileEntry[] = [];
  #entries = 0;
  #characters = 0;

  /** @param directory - the directory as the caller gave it, for errors. */
  constructor(directory: string, limits: FileLimits = fileLimits) {
    this.#directory = directory;
    this.#limits = limits;
  }

  /**
   * Counts an entry. Call this also for entries that are left out: directories, links, hidden files.
   *
   * @throws InvalidInputError if there are too many entries, or their paths are too long in total.
   */
  count(path: string): void {
    this.#entries += 1;
    this.#characters += path.length;
    if (this.#entries <= this.#limits.listEntries && this.#characters <= this.#limits.listCharacters) return;
    throw new InvalidInputError(`There are too many files below ${JSON.stringify(this.#directory)} to list`, {
      remedy:
        `A listing holds ${this.#limits.listEntries} entries, directories included, and ` +
        `${this.#limits.listCharacters} characters of paths. List a smaller directory, or remove entries with \`files.remove()\`.`,
    });
  }

  /** Adds an entry that `count` has counted. */
  add(file: FileEntry): void {
    this.#files.push(file);
  }

  /** The entries so far, sorted by path. */
  sorted(): FileEntry[] {
    return this.#files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }
}
