import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { InvalidInputError, type FileInfo, type FileStat } from "@fenced/core";
import { wholeFile, type BackendFiles, type ByteRange, type FileWriter } from "./backend-files.ts";
import { collectContent, FileListing, fileLimits, type FileLimits } from "./file-limits.ts";
import { localFileSize } from "./local-file.ts";
import { contentOf, SpoolFile, type FileContent } from "./spool-file.ts";
import { normalizeWorkspacePath } from "./workspace-path.ts";

/** What a place that is not this host can do with the files of a workspace. Paths are relative to it and normalised. */
export interface RemoteFileAccess {
  /** The most bytes that a file can have there. Default: any number. */
  readonly maxFileBytes?: number;
  /**
   * All regular files below a directory, in any order, as they are found; symbolic links are left out. It is left early
   * if there are too many: then end what still goes on.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  list(directory: string): AsyncIterable<FileInfo>;
  /**
   * What is at a path; a link is followed as long as it stays in the workspace.
   *
   * @throws FileNotFoundError, InvalidInputError, WorkspacePathError
   */
  stat(path: string): Promise<FileStat>;
  /**
   * The content of a regular file, as it comes. It is left early if there is too much: then end what still goes on.
   *
   * @param start - the first byte that is wanted. What comes before may come as well, if `seeks` is not true.
   * @throws FileNotFoundError, InvalidInputError, WorkspacePathError
   */
  content(file: string, start: number): AsyncIterable<Uint8Array>;
  /** Whether `list` is cheap enough to be asked for while a block runs, to hold it to `maxWorkspaceBytes`. */
  readonly measurable?: boolean;
  /** Whether `content` begins with the first byte that is wanted, so that what comes before need not be sent. */
  readonly seeks?: boolean;
  /**
   * Makes or replaces a file, and the directories that it lies in. A file whose content breaks off must not be seen as whole.
   *
   * @throws InvalidInputError, WorkspacePathError
   */
  put(file: string, content: FileContent): Promise<void>;
  /**
   * Removes a file, a link or a whole directory.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  remove(file: string): Promise<void>;
}

/**
 * Turns five methods into the files of an executor whose workspace is not on this host. Content is streamed;
 * what is kept in memory is bounded by `FileLimits`.
 */
export class RemoteFiles implements BackendFiles {
  readonly #access: RemoteFileAccess;
  readonly #isHidden: (relativePath: string) => boolean;
  readonly #limits: FileLimits;
  readonly diskUsage?: (atMost: number) => Promise<number>;

  /**
   * @param isHidden - recognizes the executor's own files, which are not listed, by their relative paths.
   * @param limits - how much is taken into memory.
   */
  constructor(
    access: RemoteFileAccess,
    isHidden: (relativePath: string) => boolean = () => false,
    limits: FileLimits = fileLimits,
  ) {
    this.#access = access;
    this.#isHidden = isHidden;
    this.#limits = limits;
    if (access.measurable === true) this.diskUsage = (atMost) => sizeOfAll(access.list("."), atMost);
  }

  async list(directory = "."): Promise<FileInfo[]> {
    const listing = new FileListing(directory, this.#limits);
    for await (const file of this.#access.list(normalizeWorkspacePath(directory))) {
      listing.count(file.path);
      if (!this.#isHidden(file.path)) listing.add(file);
    }
    return listing.sorted();
  }

  async stat(file: string): Promise<FileStat> {
    return this.#access.stat(normalizeWorkspacePath(file));
  }

  async read(file: string): Promise<Uint8Array> {
    return collectContent(file, this.#access.content(normalizeWorkspacePath(file), 0), this.#limits);
  }

  async write(file: string, data: Uint8Array | string): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#assertSize(file, bytes.length);
    await this.#access.put(
      fileName(file),
      contentOf(bytes.length, () => [bytes]),
    );
  }

  async *content(file: string, { start, end }: ByteRange = wholeFile): AsyncGenerator<Uint8Array, void, void> {
    let at = this.#access.seeks === true ? start : 0;
    for await (const bytes of this.#access.content(fileName(file), start)) {
      const from = Math.max(0, start - at);
      if (from < bytes.length) yield bytes.subarray(from, end - at + 1);
      at += bytes.length;
      if (at > end) return;
    }
  }

  async writer(file: string): Promise<FileWriter> {
    const target = fileName(file);
    const spool = await SpoolFile.make();
    return {
      write: async (bytes) => {
        this.#assertSize(file, spool.size + bytes.length);
        await spool.write(bytes);
      },
      close: async () => {
        try {
          await this.#access.put(target, spool.content());
        } finally {
          await spool.remove();
        }
      },
      abort: () => spool.remove(),
    };
  }

  async remove(file: string): Promise<void> {
    await this.#access.remove(fileName(file));
  }

  async upload(localPaths: readonly string[]): Promise<void> {
    const contents: FileContent[] = [];
    for (const local of localPaths) {
      const size = await localFileSize(local);
      this.#assertSize(local, size);
      contents.push(localContent(local, size));
    }
    for (const [index, content] of contents.entries()) {
      await this.#access.put(path.basename(localPaths[index] ?? ""), content);
    }
  }

  async download(files: readonly string[], toDirectory: string): Promise<string[]> {
    const copies: string[] = [];
    for (const file of files) {
      const relative = fileName(file);
      const copy = path.resolve(toDirectory, relative);
      const content = this.#access.content(relative, 0)[Symbol.asyncIterator]();
      // The first piece, or the end, says that the file is there: without it no directory is made here.
      const first = await content.next();
      try {
        await mkdir(path.dirname(copy), { recursive: true });
        await pipeline(restOf(first, content), createWriteStream(copy)).catch(async (error: unknown) => {
          // A part of a file must not be taken for all of it.
          await rm(copy, { force: true });
          throw error;
        });
      } finally {
        await content.return?.();
      }
      copies.push(copy);
    }
    return copies;
  }

  #assertSize(file: string, size: number): void {
    const { maxFileBytes = Infinity } = this.#access;
    if (size <= maxFileBytes) return;
    throw new InvalidInputError(
      `${JSON.stringify(file)} has ${size} bytes; a file here can have at most ${maxFileBytes} (${Math.floor(maxFileBytes / 1_048_576)} MB)`,
      { remedy: "Split it, or compress it and unpack it in a block; nothing was uploaded." },
    );
  }
}

/** The sizes of all files together; what goes beyond `atMost` is not counted. */
async function sizeOfAll(files: AsyncIterable<FileInfo>, atMost: number): Promise<number> {
  let bytes = 0;
  for await (const { size } of files) {
    bytes += Math.max(leastFile, size);
    if (bytes > atMost) break;
  }
  return bytes;
}

/** Bytes that a file counts at least: without content it takes space as well. */
const leastFile = 512;

/** @throws InvalidInputError if the path is the workspace itself, WorkspacePathError if it leads out. */
function fileName(given: string): string {
  const relative = normalizeWorkspacePath(given);
  if (relative !== ".") return relative;
  throw new InvalidInputError(`${JSON.stringify(given)} is the workspace itself`, {
    remedy: "Name a file or directory in it.",
  });
}

/** Opened when it is read, so that nothing is left open and every error has a listener; what is added later is left out. */
function localContent(local: string, size: number): FileContent {
  return contentOf(size, () => (size === 0 ? [] : createReadStream(local, { end: size - 1 })));
}

async function* restOf(
  first: IteratorResult<Uint8Array>,
  content: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for (let step = first; step.done !== true; step = await content.next()) yield step.value;
}
