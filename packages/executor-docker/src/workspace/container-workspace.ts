import type { BackendFiles } from "@fenced/executor-kit";

/** A block's file. */
export interface BlockFile {
  /** Absolute path in the container. */
  readonly inContainer: string;
  /** Absolute path on this host; absent if the file is not there. */
  readonly onHost?: string;
}

/** The work directory of one container, however its files get there. */
export interface ContainerWorkspace {
  readonly files: BackendFiles;
  /**
   * Writes a block's file.
   *
   * @param filename - path relative to the workspace; `undefined` to generate a name.
   */
  writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile>;
  removeBlock(file: BlockFile): Promise<void>;
  /**
   * Copies what an ended block wrote to the user's directory.
   *
   * @returns a sentence about what could not be copied. Bounded in time and size, and never rejects.
   */
  settle(): Promise<string | undefined>;
}
