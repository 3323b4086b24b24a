import type { WorkspaceFiles } from "@fenced/core";

/** A block's file. */
export interface BlockFile {
  /** Absolute path in the container. */
  readonly inContainer: string;
  /** Absolute path on this host; missing if it is not there. */
  readonly onHost?: string;
}

/** The work directory of one container, however its files get there. */
export interface BlockPlace {
  readonly files: WorkspaceFiles;
  /** Where JavaScript functions' packages are hidden, and the session's own files with them. */
  readonly kind: "bind" | "volume";
  /**
   * Writes a block's file.
   *
   * @param filename - where, relative to the workspace; `undefined`: under a name of its own.
   */
  writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile>;
  /** Removes a block's file. */
  removeBlock(file: BlockFile): Promise<void>;
  /** A block has ended: what it wrote should be seen in the user's directory now. */
  settle(): Promise<void>;
}
