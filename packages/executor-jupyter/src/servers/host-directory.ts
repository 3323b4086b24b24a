import { mkdir, rm } from "node:fs/promises";
import { BackendUnavailableError } from "@fenced/core";
import { creationRemedy, errorCode, removeTree } from "@fenced/executor-kit";

/**
 * Creates a directory on this host to run blocks in, if it is missing.
 *
 * @throws BackendUnavailableError if it cannot be created.
 */
export async function makeHostDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
  } catch (cause) {
    throw new BackendUnavailableError(
      `The work directory could not be created: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        remedy: creationRemedy(errorCode(cause)),
        cause,
      },
    );
  }
}

/**
 * Removes a directory that code could write to. Whatever cannot be removed stays: a failed clean-up never costs a
 * result.
 */
export async function removeHostDirectory(directory: string): Promise<void> {
  const removed =
    process.platform === "win32"
      ? rm(directory, { recursive: true, force: true, maxRetries: 5 })
      : removeTree(directory);
  await removed.catch(() => {});
}
