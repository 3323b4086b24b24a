import { rmSync } from "node:fs";
import path from "node:path";
import { DirectoryFiles } from "@fenced/executor-kit";
import { workspacePath } from "../container/container-options.ts";
import type { BlockFile, BlockPlace } from "./block-place.ts";
import type { HostWorkspace } from "./host-workspace.ts";

/** A work directory that host and container share. */
export class BindPlace implements BlockPlace {
  readonly kind = "bind";
  readonly files: DirectoryFiles;
  readonly #workspace: HostWorkspace;

  /** @param isOwn - tells the executor's own files. */
  constructor(workspace: HostWorkspace, isOwn: (file: string) => boolean) {
    this.#workspace = workspace;
    this.files = new DirectoryFiles(workspace.workDirectory, isOwn, workspace.fileOwner);
  }

  async writeBlock(source: string, extension: string, filename: string | undefined): Promise<BlockFile> {
    if (filename !== undefined) await this.files.write(filename, source);
    const name = filename ?? this.#workspace.writeOwn(source, extension);
    return {
      inContainer: path.posix.join(workspacePath, name),
      onHost: path.join(this.#workspace.workDirectory, name),
    };
  }

  async removeBlock({ onHost }: BlockFile): Promise<void> {
    if (onHost !== undefined) rmSync(onHost, { force: true });
  }

  async settle(): Promise<void> {
    // It is the same directory.
  }
}
