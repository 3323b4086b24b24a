import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { BackendUnavailableError } from "@fenced/core";
import { errorCode, refusalRemedy } from "@fenced/executor-kit";

/**
 * Creates a directory on this host to run blocks in, if it is missing.
 *
 * @throws BackendUnavailableError if it cannot be created.
 */
export async function makeHostDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
  } catch (cause) {
    throw new BackendUnavailableError(`The work directory could not be created: ${String(cause)}`, {
      remedy: refusalRemedy(errorCode(cause)),
      cause,
    });
  }
}

/** Milliseconds that a removal may take. */
const removeDeadlineMs = 60_000;
const removal = 'rm -rf -- "$1" 2> /dev/null || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }';

/**
 * Removes a directory that code could write to. `rm` goes from directory to directory by open descriptors, so it
 * follows no link that code puts in its way and works at any depth. Whatever cannot be removed stays: a failed
 * clean-up never costs a result.
 */
export async function removeHostDirectory(directory: string): Promise<void> {
  const removed =
    process.platform === "win32"
      ? rm(directory, { recursive: true, force: true, maxRetries: 5 })
      : promisify(execFile)("/bin/sh", ["-c", removal, "fenced", directory], { cwd: "/", timeout: removeDeadlineMs });
  await removed.catch(() => {});
}
