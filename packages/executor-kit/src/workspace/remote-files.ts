import { createReadStream } from "node:fs";
import path from "node:path";
import {
  InvalidInputError,
  type FileEntry,
  type FileFeature,
  type FileStat,
  type ListOptions,
  type WriteOptions,
} from "@fenced/core";
import type { WorkspaceTree } from "../checkpoints/workspace-tree.ts";
import { wholeFile, type BackendFiles, type ByteRange, type FileWriter } from "./backend-files.ts";
import { collectContent, FileListing, fileLimits, type FileLimits } from "./file-limits.ts";
import { LocalCopies } from "./local-copies.ts";
import { localFileSize } from "./local-file.ts";
import { contentOf, SpoolFile, type FileContent } from "./spool-file.ts";
import { cannotDo } from "./workspace-errors.ts";
import { movedPaths, normalizeWorkspacePath } from "./workspace-path.ts";

/** Operations on the files of a workspace that is not on this host. Paths are relative to it and normalized. */
export interface RemoteFileAccess {
  /** Maximum file size in bytes. Default: no limit. */
  readonly maxFileBytes?: number;
  /** What it can do beyond reading, writing, listing and removing. Default: nothing. */
  readonly features?: readonly FileFeature[];
  /**
   * Lists all regular files below a directory as they are found, in any order, without symbolic links; directories as
   * well if `options.directories` is true, and if it likes. The consumer leaves early if there are too many; stop the
   * operation then.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  list(directory: string, options?: ListOptions): AsyncIterable<FileEntry>;
  /**
   * Returns what is at a path; follows links that stay in the workspace.
   *
   * @param followLinks - false only if `features` has `"links"`.
   * @throws FileNotFoundError, InvalidInputError, WorkspacePathError
   */
  stat(path: string, followLinks: boolean): Promise<FileStat>;
  /**
   * The content of a regular file, as it arrives. The consumer leaves early if there is too much; stop the operation
   * then.
   *
   * @param start - offset of the first wanted byte. Unless `seeks` is true, earlier bytes may be included.
   * @throws FileNotFoundError, InvalidInputError, WorkspacePathError
   */
  content(file: string, start: number): AsyncIterable<Uint8Array>;
  /** Whether `list` is cheap enough to call while a block runs, to enforce `maxWorkspaceBytes`. */
  readonly measurable?: boolean;
  /** Whether `content` starts with the first wanted byte, so that earlier bytes need not be sent. */
  readonly seeks?: boolean;
  /** The files with all that checkpoints keep of them. Default: only what `list` and `content` tell. */
  readonly tree?: WorkspaceTree;
  /**
   * Creates or replaces a file and its parent directories. If the content breaks off, the file must not look complete.
   *
   * @param mode - permission bits, only if `features` has `"modes"`. Default: those of the file that is replaced, or of a
   * new one.
   * @throws InvalidInputError, WorkspacePathError
   */
  put(file: string, content: FileContent, mode?: number): Promise<void>;
  /** As `WorkspaceFiles`, between paths that have been checked; only if `features` has `"directories"`. */
  move?(from: string, to: string): Promise<void>;
  /** As `WorkspaceFiles`; only if `features` has `"directories"`. */
  makeDirectory?(path: string): Promise<void>;
  /**
   * Removes a file, a link or a whole directory.
   *
   * @throws FileNotFoundError, WorkspacePathError
   */
  remove(file: string): Promise<void>;
}

/**
 * Turns five methods into the files of an executor whose workspace is not on this host. Streams content; `FileLimits`
 * bounds what is kept in memory.
 */
export class RemoteFiles implements BackendFiles {
  readonly features: readonly FileFeature[];
  readonly #access: RemoteFileAccess;
  readonly #isHidden: (relativePath: string) => boolean;
  readonly #limits: FileLimits;
  readonly tree: WorkspaceTree | undefined;
  readonly diskUsage?: (atMost: number) => Promise<number>;

  /**
   * @param isHidden - returns true for the relative paths of the executor's own files, which are not listed.
   * @param limits - limits on what is read into memory.
   */
  constructor(
    access: RemoteFileAccess,
    isHidden: (relativePath: string) => boolean = () => false,
    limits: FileLimits = fileLimits,
  ) {
    this.#access = access;
    this.features = [...(access.features ?? []), ...(access.tree ? (["trees"] as const) : [])];
    this.#isHidden = isHidden;
    this.#limits = limits;
    this.tree = access.tree && withoutHidden(access.tree, isHidden);
    if (access.measurable === true) this.diskUsage = (atMost) => sizeOfAll(access.list("."), atMost);
  }

  async list(directory = ".", options: ListOptions = {}): Promise<FileEntry[]> {
    const listing = new FileListing(directory, this.#limits);
    for await (const file of this.#access.list(normalizeWorkspacePath(directory), options)) {
      listing.count(file.path);
      const isWanted = file.type === "file" || options.directories === true;
      if (isWanted && !this.#isHidden(file.path)) listing.add(file);
    }
    return listing.sorted();
  }

  async stat(file: string, followLinks = true): Promise<FileStat> {
    return this.#access.stat(normalizeWorkspacePath(file), followLinks);
  }

  async read(file: string): Promise<Uint8Array> {
    return collectContent(file, this.#access.content(normalizeWorkspacePath(file), 0), this.#limits);
  }

  async write(file: string, data: Uint8Array | string, { mode }: WriteOptions = {}): Promise<void> {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#assertSize(file, bytes.length);
    await this.#access.put(
      fileName(file),
      contentOf(bytes.length, () => [bytes]),
      mode,
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

  async move(from: string, to: string): Promise<void> {
    const [source, target] = movedPaths(from, to);
    if (!this.#access.move) throw cannotDo("move files");
    await this.#access.move(source, target);
  }

  async makeDirectory(given: string): Promise<void> {
    if (!this.#access.makeDirectory) throw cannotDo("create a directory");
    const directory = normalizeWorkspacePath(given);
    if (directory !== ".") await this.#access.makeDirectory(directory);
  }

  async writer(file: string, { mode }: WriteOptions = {}): Promise<FileWriter> {
    const target = fileName(file);
    const spool = await SpoolFile.make();
    return {
      write: async (bytes) => {
        this.#assertSize(file, spool.size + bytes.length);
        await spool.write(bytes);
      },
      close: async () => {
        try {
          await this.#access.put(target, spool.content(), mode);
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
    const copies = new LocalCopies(toDirectory);
    for (const file of files) {
      const relative = fileName(file);
      const content = this.#access.content(relative, 0)[Symbol.asyncIterator]();
      // The first piece, or the end, proves that the file exists; without it, no directory is created here.
      const first = await content.next();
      try {
        await copies.put(relative, restOf(first, content));
      } finally {
        await content.return?.();
      }
    }
    return copies.paths;
  }

  #assertSize(file: string, size: number): void {
    const { maxFileBytes = Infinity } = this.#access;
    if (size <= maxFileBytes) return;
    throw new InvalidInputError(
      `${JSON.stringify(file)} has ${size} bytes; the limit is ${maxFileBytes} (${Math.floor(maxFileBytes / 1_048_576)} MiB)`,
      { remedy: "Split it, or compress it and unpack it in a block; nothing was uploaded." },
    );
  }
}

function withoutHidden(tree: WorkspaceTree, isHidden: (relativePath: string) => boolean): WorkspaceTree {
  return {
    list: (add) => tree.list((entry) => (isHidden(entry.path) ? undefined : add(entry))),
    read: (files, visit) => tree.read(files, visit),
    create: (plan, lose) => tree.create(plan, lose),
  };
}

/** The total size of all files; stops counting beyond `atMost`. */
async function sizeOfAll(files: AsyncIterable<FileEntry>, atMost: number): Promise<number> {
  let bytes = 0;
  for await (const { type, size } of files) {
    if (type === "file") bytes += Math.max(leastFile, size);
    if (bytes > atMost) break;
  }
  return bytes;
}

/** Minimum size in bytes that a file counts as, since an empty file also uses space. */
const leastFile = 512;

/** @throws InvalidInputError if the path is the workspace itself, WorkspacePathError if it leads out. */
function fileName(given: string): string {
  const relative = normalizeWorkspacePath(given);
  if (relative !== ".") return relative;
  throw new InvalidInputError(`${JSON.stringify(given)} is the workspace itself`, {
    remedy: "Name a file or directory in it.",
  });
}

/**
 * Opens the file when it is read, so that nothing stays open and every error has a listener; ignores what is appended
 * later.
 */
function localContent(local: string, size: number): FileContent {
  return contentOf(size, () => (size === 0 ? [] : createReadStream(local, { end: size - 1 })));
}

async function* restOf(
  first: IteratorResult<Uint8Array>,
  content: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for (let step = first; step.done !== true; step = await content.next()) yield step.value;
}
