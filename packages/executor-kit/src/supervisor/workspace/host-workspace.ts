import path from "node:path";
import type { BlockRun } from "../../run/block-run.ts";
import type { DirectoryFiles } from "../../workspace/directory-files.ts";
import { removeOwnFile, type SessionDirectories } from "../../workspace/session-directories.ts";
import type { BlockFile, PlaceWorkspace } from "../connector.ts";

/** A work directory that this host and the place share. */
export class HostWorkspace implements PlaceWorkspace {
  readonly path: string;
  readonly filesStay: boolean = true;
  readonly #directories: SessionDirectories;
  readonly #keepFiles: boolean;

  /** @param seenAs - absolute path of the work directory, as programs see it. Default: the same as on this host. */
  constructor(directories: SessionDirectories, { keepFiles, seenAs }: { keepFiles: boolean; seenAs?: string }) {
    this.#directories = directories;
    this.#keepFiles = keepFiles;
    this.path = seenAs ?? directories.workDirectory;
  }

  get files(): DirectoryFiles {
    return this.#directories.files();
  }

  async writeBlock(block: BlockRun, extension: string): Promise<BlockFile> {
    const onHost = await this.#directories.writeBlock(block, extension);
    const temporary = block.filename === undefined && !this.#keepFiles;
    return { path: path.posix.join(this.path, block.filename ?? path.basename(onHost)), onHost, temporary };
  }

  settle(file: BlockFile | undefined): Promise<undefined> | undefined {
    // The block may have replaced the file or locked the directory; its result counts nevertheless.
    if (file?.temporary !== true || file.onHost === undefined) return undefined;
    return removeOwnFile(file.onHost).then(() => undefined);
  }

  hideFunctionsPackage(): void {
    this.#directories.claimFunctionsPackage();
  }
}
