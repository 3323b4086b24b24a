import path from "node:path";
import { removeOwnFile, type DirectoryFiles, type SessionDirectories } from "@fenced/executor-kit";
import type { BlockFile } from "@fenced/executor-kit/supervisor";
import { workspacePath } from "../container/container-options.ts";
import type { ContainerWorkspace } from "../container/container-place.ts";

/** A work directory that host and container share. */
export class BoundWorkspace implements ContainerWorkspace {
  readonly files: DirectoryFiles;
  readonly #directories: SessionDirectories;

  constructor(directories: SessionDirectories) {
    this.#directories = directories;
    this.files = directories.files();
  }

  async writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile> {
    if (filename !== undefined) await this.files.write(filename, source);
    const name = filename ?? this.#directories.writeOwn(source, extension);
    return {
      path: path.posix.join(workspacePath, name),
      onHost: path.join(this.#directories.workDirectory, name),
    };
  }

  async removeBlock({ onHost }: BlockFile): Promise<void> {
    if (onHost !== undefined) await removeOwnFile(onHost);
  }

  async settle(): Promise<undefined> {
    // Both sides share the directory.
  }
}
