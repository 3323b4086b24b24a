import { mkdir } from "node:fs/promises";
import { BackendUnavailableError } from "@fenced/core";

/**
 * Makes a directory on this host to run blocks in, if it is not there.
 *
 * @throws BackendUnavailableError if it cannot be made.
 */
export async function makeHostDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
  } catch (cause) {
    throw new BackendUnavailableError(`The work directory cannot be made: ${String(cause)}`, {
      remedy: "Give a `workDir` that can be written to, and see that the disk is not full.",
      cause,
    });
  }
}
