import type { BackendFiles } from "@fenced/executor-kit";

/** A block's file. */
export interface BlockFile {
  /** Absolute path in the container. */
  readonly inContainer: string;
  /** Absolute path on this host; missing if it is not there. */
  readonly onHost?: string;
}

/** The work directory of one container, however its files get there. */
export interface ContainerWorkspace {
  readonly files: BackendFiles;
  /**
   * Writes a block's file.
   *
   * @param filename - where, relative to the workspace; `undefined`: under a name of its own.
   */
  writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile>;
  /** Removes a block's file. */
  removeBlock(file: BlockFile): Promise<void>;
  /**
   * Brings what a block that has ended wrote to the user's directory.
   *
   * @returns a sentence about what could not be brought there. Bounded in time and size, and never rejects.
   */
  settle(): Promise<string | undefined>;
}
