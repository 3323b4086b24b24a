/**
 * What to do if the system refuses to read or write in a work directory.
 *
 * @param code - of the system's error, such as `"EROFS"`.
 */
export function refusalRemedy(code: string | undefined): string {
  if (code === "EROFS") return "The directory is read-only: set `workDir` to one that can be written to.";
  if (code === "EACCES" || code === "EPERM") {
    return "The user that this program runs as lacks the permission: grant it, or set `workDir` to another directory.";
  }
  if (code === "ENOSPC" || code === "EDQUOT") {
    return "The disk, or your share of it, is full: make room, for example with `files.remove()`.";
  }
  if (code === "EBUSY") return "Something is mounted there or below: unmount it first.";
  if (code === "ENOENT" || code === "ENOTDIR") return "The directory no longer exists: call stop() and start().";
  return "Check that the directory can be written to, and that the disk is not full.";
}

/** What to do if a work directory could not be created. */
export function creationRemedy(code: string | undefined): string {
  if (code === "EEXIST" || code === "ENOTDIR") {
    return "Its path leads to a file, or through one: set `workDir` to a directory.";
  }
  return refusalRemedy(code);
}
