import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, unlinkSync } from "node:fs";
import path from "node:path";

/**
 * Opens a new file without a name, since code can change what has one: its one descriptor is for writing and for the
 * program. On Windows, which cannot remove the name of an open file, it keeps it.
 */
export function openUnnamed(directory: string): number {
  const file = path.join(directory, `unnamed-${randomUUID()}`);
  const opened = openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    if (process.platform !== "win32") unlinkSync(file);
    return opened;
  } catch (error) {
    closeSync(opened);
    throw error;
  }
}
