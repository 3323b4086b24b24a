/** A file in the workspace. */
export interface FileInfo {
  /** Path relative to the workspace, with `/` between its parts on every system. */
  readonly path: string;
  /** Size in bytes. */
  readonly size: number;
}

/** What `stat` says about a file or a directory of the workspace. */
export interface FileStat extends FileInfo {
  readonly type: "file" | "directory";
  /** Size in bytes; 0 for a directory. */
  readonly size: number;
  /** When it was last changed, by the clock of the place where it is, if that place says so. Whole seconds at some places. */
  readonly modifiedAt?: Date;
}

/** Which part of a file is read. */
export interface ReadStreamOptions {
  /** The first byte to read, counted from 0. Default: 0. Beyond the end of the file there is nothing to read. */
  readonly start?: number;
  /** The last byte to read, which is read too, as in an HTTP range and in `fs.createReadStream`. Default: the file's last. */
  readonly end?: number;
  /** Ends the reading: the stream then fails with `signal.reason`. */
  readonly signal?: AbortSignal;
}

/**
 * The files that the blocks see: their working directory. All paths are relative to it, with `/` between their parts.
 * The first call starts an executor that was never started; after `stop()` calls reject with `ExecutorStoppedError`.
 *
 * A path that leads out of the workspace (`..`, absolute, through a symbolic link) throws `WorkspacePathError`.
 */
export interface WorkspaceFiles {
  /**
   * All files below `directory`, recursively, sorted by path; the executor's own temporary files are left out.
   *
   * @param directory - default: the whole workspace.
   * @throws FileNotFoundError if `directory` is not there.
   */
  list(directory?: string): Promise<FileInfo[]>;

  /**
   * Says what is at `path`, and how large it is. A symbolic link is followed as long as it stays in the workspace.
   *
   * @throws FileNotFoundError if `path` is not there.
   * @throws InvalidInputError if it is neither a file nor a directory.
   */
  stat(path: string): Promise<FileStat>;

  /**
   * The whole content of a file, in memory.
   *
   * @throws FileNotFoundError if `path` is not there.
   * @throws InvalidInputError if it has more than 512 MiB, or is not a regular file: use `readStream` for a large one.
   */
  read(path: string): Promise<Uint8Array>;

  /**
   * The content of a file of any size, as it is read; what is not asked for is not read ahead. Nothing is opened before the first
   * read, and leaving the stream (`cancel`, `break`) closes the file. The stream fails with the errors of `read`, and with
   * `ExecutorStoppedError` if the executor is stopped.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   *
   * @example
   * return new Response(executor.files.readStream("out/video.mp4"));
   */
  readStream(path: string, options?: ReadStreamOptions): ReadableStream<Uint8Array>;

  /** Writes a file, over an older one; its parent directories are made. Text is written as UTF-8. */
  write(path: string, data: Uint8Array | string): Promise<void>;

  /**
   * Writes a file of any size, over an older one; its parent directories are made. The writer waits while the place is slow, and
   * memory is bounded. The file is complete when `close()` resolves; a stream that was aborted leaves no part of a file behind.
   * The stream fails with the errors of `write`, and with `ExecutorStoppedError` if the executor is stopped.
   *
   * @example
   * await request.body.pipeTo(executor.files.writeStream("upload.csv"));
   */
  writeStream(path: string): WritableStream<Uint8Array>;

  /**
   * Removes a file, or a directory with all that is in it.
   *
   * @throws FileNotFoundError if `path` is not there.
   */
  remove(path: string): Promise<void>;

  /**
   * Copies files of the host into the workspace, each under its own base name. Streamed, not held in memory.
   *
   * @throws FileNotFoundError if one of `localPaths` is not there; then none is copied.
   */
  upload(localPaths: readonly string[]): Promise<void>;

  /**
   * Copies files of the workspace to the host, each under its relative path below `toDirectory`, which is made.
   *
   * @returns the absolute paths of the copies, in the order of `paths`.
   * @throws FileNotFoundError if one of `paths` is not there.
   */
  download(paths: readonly string[], toDirectory: string): Promise<string[]>;
}
