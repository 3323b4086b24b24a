import path from "node:path";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { blockSource, type BlockRun, type DirectoryFiles, type SessionDirectories } from "@fenced/executor-kit";

/**
 * Writes a block to the work directory.
 *
 * @returns the file's absolute path.
 * @throws BackendUnavailableError if there is not enough space or permission; WorkspacePathError and others for the
 * block's file name.
 */
export async function writeBlock(
  directories: SessionDirectories,
  files: DirectoryFiles,
  { language, code, filename }: BlockRun,
  extension: string,
): Promise<string> {
  const source = blockSource(language, code);
  try {
    if (filename !== undefined) await files.write(filename, source);
    return path.join(directories.workDirectory, filename ?? directories.writeOwn(source, extension));
  } catch (cause) {
    if (FencedError.isInstance(cause)) throw cause;
    throw new BackendUnavailableError(`The block cannot be written to the work directory: ${String(cause)}`, {
      remedy: "Check that the directory still exists and that the disk is not full, then call stop() and start().",
      cause,
    });
  }
}
