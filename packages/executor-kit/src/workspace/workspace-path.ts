import path from "node:path";
import { WorkspacePathError } from "@fenced/core";
import { hasBytes, unusableName } from "./path-bytes.ts";

/**
 * Normalizes a path inside a workspace: relative, with `/` as the separator. Does not look at symbolic links.
 *
 * @throws WorkspacePathError if it is absolute, empty or leads out of the workspace; InvalidInputError if it cannot be a
 * file's name.
 */
export function normalizeWorkspacePath(given: string): string {
  const slashed = process.platform === "win32" ? given.replaceAll("\\", "/") : given;
  const normal = path.posix.normalize(slashed).replace(/\/$/, "");
  const leaves = normal === ".." || normal.startsWith("../");
  if (given === "" || given.includes("\0") || leaves || path.isAbsolute(given) || path.posix.isAbsolute(slashed)) {
    throw outsideWorkspace(given);
  }
  if (!hasBytes(normal)) throw unusableName(given);
  return normal;
}

/** The error for a path that leads out of the workspace. */
export function outsideWorkspace(given: string): WorkspacePathError {
  return new WorkspacePathError(`The path ${JSON.stringify(given)} is not in the workspace`, {
    remedy: "Use a path relative to the workspace, without `..` and not through a symbolic link that leaves it.",
  });
}
