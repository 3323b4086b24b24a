import type { WorkspaceFiles } from "@fenced/core";

/** Which bytes of a file are read. */
export interface ByteRange {
  /** The first byte, counted from 0. */
  readonly start: number;
  /** The last byte, which is read too; `Infinity`: the file's last. */
  readonly end: number;
}

/** All bytes of a file. */
export const wholeFile: ByteRange = { start: 0, end: Infinity };

/** A file that is being written. */
export interface FileWriter {
  /** Adds to the file; the bytes may be used again when it resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file complete. */
  close(): Promise<void>;
  /** Leaves nothing of the file behind; never rejects, and may be called at any time, also twice. */
  abort(): Promise<void>;
}

/**
 * The files of an open session: what the base class makes `WorkspaceFiles` of. `DirectoryFiles` is it for a directory of this
 * host, and `RemoteFiles` for any other place.
 */
export interface BackendFiles extends Omit<WorkspaceFiles, "readStream" | "writeStream"> {
  /** The content of a regular file, as it is read; left early if nobody wants more. Fails like `read`. */
  content(path: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /**
   * Measures the disk space that the workspace takes, for `maxWorkspaceBytes`; stops counting beyond `atMost`. Left out where
   * that cannot be known while a block runs.
   */
  diskUsage?(atMost: number): Promise<number>;
  /** Begins a file of any size. Fails like `write`. */
  writer(path: string): Promise<FileWriter>;
}
