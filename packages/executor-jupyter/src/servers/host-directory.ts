import { rm } from "node:fs/promises";
import { makeDirectories } from "@fenced/core/runtime";
import { directoryNotCreated, removeTree } from "@fenced/executor-kit";

/**
 * Creates a directory on this host to run blocks in, if it is missing.
 *
 * @throws BackendUnavailableError if it cannot be created.
 */
export async function makeHostDirectory(directory: string): Promise<void> {
  try {
    await makeDirectories(directory);
  } catch (cause) {
    throw directoryNotCreated(cause);
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
