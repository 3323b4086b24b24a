/** A file in the workspace. */
export interface FileInfo {
  /** Path relative to the workspace, with `/` between its parts on every system. */
  readonly path: string;
  /** Size in bytes. */
  readonly size: number;
}

/**
 * The files that the blocks see: their working directory. All paths are relative to it, with `/` between their parts.
 * The first call starts an executor that is not started.
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

  /** @throws FileNotFoundError if `path` is not there. */
  read(path: string): Promise<Uint8Array>;

  /** Writes a file, over an older one; its parent directories are made. Text is written as UTF-8. */
  write(path: string, data: Uint8Array | string): Promise<void>;

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
