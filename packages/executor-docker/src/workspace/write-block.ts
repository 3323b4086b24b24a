import { BackendUnavailableError, FencedError } from "@fenced/core";
import { type BlockRun, blockSource } from "@fenced/executor-kit";
import type { BlockFile, ContainerWorkspace } from "./container-workspace.ts";

/**
 * Writes a block to the work directory.
 *
 * @throws BackendUnavailableError if there is not enough space or permission; WorkspacePathError and others for the
 * block's file name.
 */
export async function writeBlock(workspace: ContainerWorkspace, run: BlockRun, extension: string): Promise<BlockFile> {
  try {
    return await workspace.writeBlock(blockSource(run.language, run.code), extension, run.filename);
  } catch (cause) {
    if (FencedError.isInstance(cause)) throw cause;
    throw new BackendUnavailableError(`The block could not be written to the work directory: ${String(cause)}`, {
      remedy: "Make room with `files.list()` and `files.remove()` if its disk is full, and check that it is writable.",
      cause,
    });
  }
}
