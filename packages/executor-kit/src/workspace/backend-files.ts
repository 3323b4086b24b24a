import type { FileEntry, FileFeature, FileStat, ListOptions, WorkspaceFiles, WriteOptions } from "@fenced/core";
import type { WorkspaceTree } from "../checkpoints/workspace-tree.ts";

/** The part of a file to read. */
export interface ByteRange {
  /** Offset of the first byte. */
  readonly start: number;
  /** Offset of the last byte, inclusive; `Infinity`: the file's last. */
  readonly end: number;
}

/** The whole file. */
export const wholeFile: ByteRange = { start: 0, end: Infinity };

/** What files can do one by one in a POSIX file system. */
export const allFileFeatures: readonly FileFeature[] = ["directories", "modes", "links"];
/** The same, where there is also a `WorkspaceTree`. */
export const treeFileFeatures: readonly FileFeature[] = [...allFileFeatures, "trees"];

/** A file that is being written. */
export interface FileWriter {
  /** Appends to the file; the bytes may be reused when it resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Completes the file. */
  close(): Promise<void>;
  /** Discards the file. Never rejects; may be called at any time, and more than once. */
  abort(): Promise<void>;
}

/**
 * The files of an open session, on which the base class builds `WorkspaceFiles`. `DirectoryFiles` implements it for a
 * directory of this host, and `RemoteFiles` for any other place.
 */
export interface BackendFiles extends Omit<
  WorkspaceFiles,
  "readStream" | "writeStream" | "list" | "stat" | "archive" | "extract" | "watch"
> {
  /** What they can do beyond reading, writing, listing and removing. */
  readonly features: readonly FileFeature[];
  /** As `WorkspaceFiles`; each entry has its type. */
  list(directory?: string, options?: ListOptions): Promise<FileEntry[]>;
  /** As `WorkspaceFiles`. */
  stat(path: string, followLinks?: boolean): Promise<FileStat>;
  /** The content of a regular file, as it is read; the consumer may leave early. Fails like `read`. */
  content(path: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /**
   * Measures the disk space of the workspace, for `maxWorkspaceBytes`; stops counting beyond `atMost`. Leave it out if
   * that cannot be measured while a block runs.
   */
  diskUsage?(atMost: number): Promise<number>;
  /** Starts to write a file of any size. Fails like `write`. */
  writer(path: string, options?: WriteOptions): Promise<FileWriter>;
  /**
   * The files with all that checkpoints keep of them. Without it, checkpoints have the files that `list` names, and
   * nothing of their permissions, times, links and empty directories.
   */
  readonly tree?: WorkspaceTree | undefined;
}
