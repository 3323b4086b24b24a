import type { CheckpointIssue } from "../checkpoints/checkpoint-content.ts";

/** A file in the workspace. */
export interface FileInfo {
  /** Path relative to the workspace, with `/` as the separator on every system. */
  readonly path: string;
  /** Size in bytes. */
  readonly size: number;
}

/** A file or directory in a listing with directories. */
export interface FileEntry extends FileInfo {
  readonly type: "file" | "directory";
  /** Size in bytes; 0 for a directory. */
  readonly size: number;
}

/** What `list` returns. */
export interface ListOptions {
  /** List what is below subdirectories, too. Default: true. */
  readonly recursive?: boolean | undefined;
  /** List directories, too, each entry with its type. Default: false, only files. */
  readonly directories?: boolean | undefined;
}

/** What `stat` returns about what is at a path. */
export interface FileStat extends FileInfo {
  /** `link` only with `followLinks: false`. */
  readonly type: "file" | "directory" | "link";
  /** Size in bytes; 0 for a directory, the length of the target for a link. */
  readonly size: number;
  /**
   * Permission bits, such as `0o755`: anyone can execute the file if `mode & 0o111` is not 0. Absent where
   * `capabilities.files` has no `"modes"`.
   */
  readonly mode?: number;
  /**
   * Where the symbolic link at this path leads, as it is written in the link. Absent if there is no link at the path
   * itself, or `capabilities.files` has no `"links"`.
   */
  readonly linkTarget?: string;
  /**
   * Time of the last modification, by the clock of the machine that stores the file; absent if the backend does not
   * report it. Some backends report whole seconds only.
   */
  readonly modifiedAt?: Date;
}

/** How `stat` looks at a path. */
export interface StatOptions {
  /** Describe what a link at the path leads to, instead of the link itself. Default: true. */
  readonly followLinks?: boolean | undefined;
}

/** How a file is written. */
export interface WriteOptions {
  /**
   * Permission bits of the file, such as `0o755` for a program. Default: those of the file that is replaced, or of a new
   * file there.
   */
  readonly mode?: number | undefined;
}

/** How `watch` watches a directory. */
export interface WatchOptions {
  /** Watch what is below subdirectories, too, also of those that are made later. Default: false. */
  readonly recursive?: boolean | undefined;
  /** Ends the events; that is not an error. */
  readonly signal?: AbortSignal | undefined;
}

/** Something that happened in a watched directory. */
export interface FileEvent {
  /**
   * - `start`: the first event; from now on, what happens is seen;
   * - `create`: there is something new at the path, or something was moved there, as `files.write()` does;
   * - `write`: the content has changed;
   * - `chmod`: permissions, owner or times have changed;
   * - `rename`: it is no longer at the path, because it was moved from there;
   * - `remove`: it is no longer there;
   * - `overflow`: more has happened than could be kept or watched, so events are missing: look with `list`.
   */
  readonly type: "start" | "create" | "write" | "chmod" | "rename" | "remove" | "overflow";
  /** Path relative to the workspace; the watched directory's own for `start` and `overflow`, and when it is gone itself. */
  readonly path: string;
}

/** What `archive` packs. */
export interface ArchiveOptions {
  /** The directory to pack; the paths in the archive are relative to it. Default: the workspace. */
  readonly path?: string | undefined;
  /** Cancels the stream, which then fails with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

/** How `extract` unpacks an archive. */
export interface ExtractOptions {
  /** The directory to unpack into, which is created if necessary. Default: the workspace. */
  readonly path?: string | undefined;
  /** Limit on all files of the archive together, in bytes. Default: 1 GiB. */
  readonly maxBytes?: number | undefined;
  /** Stops, and rejects with `signal.reason`; then the workspace is as it was, unless everything was already being put in place. */
  readonly signal?: AbortSignal | undefined;
}

/** What `extract` has unpacked. */
export interface ExtractReceipt {
  /** Number of files. */
  readonly files: number;
  /** Their size in bytes. */
  readonly bytes: number;
  /** What the place cannot keep: links, empty directories, and that a file can be executed; with the reasons. */
  readonly incomplete: readonly CheckpointIssue[];
}

/** The part of a file to read. */
export interface ReadStreamOptions {
  /** Offset of the first byte to read. Default: 0. Past the end of the file, the stream is empty. */
  readonly start?: number | undefined;
  /**
   * Offset of the last byte to read, inclusive as in an HTTP range and in `fs.createReadStream`. Default: the file's
   * last byte.
   */
  readonly end?: number | undefined;
  /** Cancels the stream, which then fails with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The files in the blocks' working directory. All paths are relative to it, with `/` as the separator. The first call
 * starts an executor that was never started; after `stop()`, calls reject with `ExecutorStoppedError`.
 *
 * A path that leads out of the workspace (`..`, absolute, through a symbolic link) throws `WorkspacePathError`.
 */
export interface WorkspaceFiles {
  /**
   * Lists all files below `directory`, recursively, sorted by path, without the executor's own temporary files. Symbolic
   * links are not listed.
   *
   * @param directory - default: the whole workspace.
   * @throws FileNotFoundError if `directory` does not exist.
   * @throws InvalidInputError if an option is unknown or wrong, there are more than 500,000 entries, or their paths have
   * more than 67,108,864 characters.
   */
  list(directory: string | undefined, options: ListOptions & { readonly directories: true }): Promise<FileEntry[]>;
  list(directory?: string, options?: ListOptions): Promise<FileInfo[]>;

  /**
   * Returns the type, size and permissions of what is at `path`. Follows a symbolic link as long as it stays in the
   * workspace.
   *
   * @throws FileNotFoundError if `path` does not exist.
   * @throws InvalidInputError if it is neither a file nor a directory nor, with `followLinks: false`, a link; or that
   * option is given where `capabilities.files` has no `"links"`.
   */
  stat(path: string, options?: StatOptions): Promise<FileStat>;

  /**
   * Reads a whole file into memory.
   *
   * @throws FileNotFoundError if `path` does not exist.
   * @throws InvalidInputError if it is larger than 512 MiB (use `readStream`), or is not a regular file.
   */
  read(path: string): Promise<Uint8Array>;

  /**
   * Streams a file of any size, without reading ahead. Nothing is opened before the first read; leaving the stream
   * (`cancel`, `break`) closes the file. The stream fails with the errors of `read`, and with `ExecutorStoppedError` if
   * the executor is stopped.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   *
   * @example
   * return new Response(executor.files.readStream("out/video.mp4"));
   */
  readStream(path: string, options?: ReadStreamOptions): ReadableStream<Uint8Array>;

  /**
   * Writes a file, replaces an existing one, and creates missing parent directories. Text is written as UTF-8.
   *
   * @throws InvalidInputError if `path` is a directory, or `mode` is given where `capabilities.files` has no `"modes"`.
   */
  write(path: string, data: Uint8Array | string, options?: WriteOptions): Promise<void>;

  /**
   * Writes a file of any size, replaces an existing one, and creates missing parent directories. A slow backend makes
   * the writer wait, so memory is bounded. The file is complete when `close()` resolves; an aborted stream leaves no
   * partial file behind. The stream fails with the errors of `write`, and with `ExecutorStoppedError` if the executor
   * is stopped.
   *
   * @example
   * await request.body.pipeTo(executor.files.writeStream("upload.csv"));
   */
  writeStream(path: string, options?: WriteOptions): WritableStream<Uint8Array>;

  /**
   * Renames a file, a directory with everything in it, or a link itself, and creates missing parent directories of `to`.
   * Replaces a file at `to`, in one step; with Jupyter kernels other than Python, `to` is missing for a moment.
   *
   * @throws FileNotFoundError if `from` does not exist.
   * @throws InvalidInputError if `to` is a directory, `from` is a directory and `to` something else, `to` is inside
   * `from`, one of them is the workspace itself, or they are on different file systems; also where `capabilities.files`
   * has no `"directories"`.
   */
  move(from: string, to: string): Promise<void>;

  /**
   * Creates a directory with its missing parents. Does nothing if it exists.
   *
   * @throws InvalidInputError if a part of the path is a file; also where `capabilities.files` has no `"directories"`.
   */
  makeDirectory(path: string): Promise<void>;

  /**
   * Watches a directory, without following links and without the executor's own temporary files: yields what happens there as long as something reads, also what the executor itself and other programs do.
   * Begins with the first read. Ends without an error when `signal` is aborted, the loop is left, the executor is stopped or
   * restarted, or the directory itself is moved or removed, which is the last event. A change can cause several events, and what is in
   * a new subdirectory is reported even if it was there before. What happens while nobody reads waits in the place, up to its
   * kernel's limit of usually 16,384 events. Directories that code's user may not read are not watched. At most 64 directories can be
   * watched at once.
   *
   * Only what the kernel under the code does is seen: not what others do on a network file system, and, where that kernel is not
   * this host's, not what this host does in a `workDir` that it shares.
   *
   * Code in the place can make events, hide them, and end the watching.
   *
   * @throws FileNotFoundError if there is no such directory.
   * @throws InvalidInputError if `capabilities.files` has no `"watch"`, with `recursive` there are more than 8192
   * directories or 256 levels, or the place lets nobody watch (more).
   * @throws BackendUnavailableError if the watching ends by itself, for example because code has ended it.
   *
   * @example
   * for await (const { type, path } of executor.files.watch("src", { recursive: true, signal })) console.log(type, path);
   */
  watch(path: string, options?: WatchOptions): AsyncGenerator<FileEvent, void, void>;

  /**
   * Packs a directory as an uncompressed tar archive (POSIX pax), without reading ahead: files, and where `capabilities.files`
   * lists `"trees"` also empty directories and links, with permissions and times. Leaves out the executor's own files, links that lead out
   * of the directory, pipes, sockets and devices. A file that changes meanwhile has the size that it had when it was
   * listed; what is missing of it is zeros.
   *
   * @throws the stream fails with FileNotFoundError if the directory does not exist; InvalidInputError if `path` is not
   * a directory but a file or a link, something in it cannot be read, or there is too much to list.
   *
   * @example
   * await pipeline(executor.files.archive({ path: "dist" }), createGzip(), createWriteStream("dist.tar.gz"));
   */
  archive(options?: ArchiveOptions): ReadableStream<Uint8Array>;

  /**
   * Unpacks an uncompressed tar archive over what is there. Nothing is changed unless all of it has arrived and is valid.
   * Its files are kept in a temporary file of this host until then. Owners are not restored.
   *
   * @throws WorkspacePathError if a path or a link in it leads out of the workspace.
   * @throws InvalidInputError if it is not a complete tar archive, has devices, pipes, or sparse files, is larger than
   * `maxBytes`, has more than 500,000 entries or a path with more than 4096 characters or 256 parts, or would have to replace a
   * directory by a file or the other way round.
   *
   * @example
   * await executor.files.extract(Readable.toWeb(createReadStream("source.tar")), { path: "source" });
   */
  extract(archive: AsyncIterable<Uint8Array>, options?: ExtractOptions): Promise<ExtractReceipt>;

  /**
   * Removes a file, or a directory and everything in it.
   *
   * @throws FileNotFoundError if `path` does not exist.
   * @throws InvalidInputError if `path` is the workspace itself.
   */
  remove(path: string): Promise<void>;

  /**
   * Copies files of the host into the workspace, each under its base name. Streams them instead of holding them in
   * memory.
   *
   * @throws FileNotFoundError if one of `localPaths` does not exist; then none is copied.
   * @throws InvalidInputError if one of `localPaths` is not a regular file; then none is copied.
   */
  upload(localPaths: readonly string[]): Promise<void>;

  /**
   * Copies files of the workspace to the host, each under its relative path below `toDirectory`, which is created if
   * missing.
   *
   * @returns the absolute paths of the copies, in the order of `paths`.
   * @throws FileNotFoundError if one of `paths` does not exist.
   * @throws InvalidInputError if one of `paths` is not a regular file.
   */
  download(paths: readonly string[], toDirectory: string): Promise<string[]>;
}
