import path from "node:path";
import { InvalidInputError, WorkspacePathError } from "@fenced/core";
import { startsInHome } from "./absolute-paths.ts";
import { hasBytes, unusableName } from "./path-bytes.ts";

/**
 * Normalizes a path inside a workspace: relative, with `/` as the separator. Does not look at symbolic links.
 *
 * @throws WorkspacePathError if it is absolute, empty or leads out of the workspace; InvalidInputError if it cannot be a
 * file's name.
 */
export function normalizeWorkspacePath(given: string): string {
  const normal = path.posix.normalize(slashed(given)).replace(/\/$/, "");
  const leaves = normal === ".." || normal.startsWith("../");
  if (
    given === "" ||
    given.includes("\0") ||
    leaves ||
    path.isAbsolute(given) ||
    path.posix.isAbsolute(slashed(given))
  ) {
    throw outsideWorkspace(given);
  }
  if (!hasBytes(normal)) throw unusableName(given);
  return normal;
}

/**
 * Checks the paths of a move.
 *
 * @returns both, normalized.
 * @throws InvalidInputError if one is the workspace itself, or `to` is inside `from`; as `normalizeWorkspacePath`.
 */
export function movedPaths(from: string, to: string): readonly [from: string, to: string] {
  const paths = [normalizeWorkspacePath(from), normalizeWorkspacePath(to)] as const;
  if (paths.includes(".")) {
    throw new InvalidInputError("The workspace itself can neither be moved nor be replaced", {
      remedy: "Name a file or directory in it.",
    });
  }
  if (!paths[1].startsWith(`${paths[0]}/`)) return paths;
  throw new InvalidInputError(`${JSON.stringify(from)} cannot be moved into itself`, {
    remedy: "Choose a path outside of that directory.",
  });
}

/**
 * A path as callers and models write it, relative to the workspace if it is an absolute path in there: that is what
 * `pwd` and tracebacks show.
 *
 * @param workspace - its absolute path, as programs see it; `undefined` if that is not known.
 */
export function relativeToWorkspace(given: string, workspace: string | undefined): string {
  if (workspace === undefined) return given;
  const top = `${slashed(workspace).replace(/\/+$/, "")}/`;
  const normal = path.posix.normalize(slashed(given));
  if (`${normal}/` === top) return ".";
  return normal.startsWith(top) ? normal.slice(top.length) : given;
}

/**
 * @throws WorkspacePathError for a path to write that starts with `~/`, which only a shell expands: it would become a
 * directory named `~`.
 */
export function refuseHome(given: string): void {
  if (!startsInHome(given)) return;
  throw new WorkspacePathError(`The path ${JSON.stringify(given)} is not in the workspace: \`~\` is not expanded`, {
    remedy: "Use a path relative to the workspace; for a file whose name starts with `~`, put `./` before it.",
  });
}

/** The error for a path that leads out of the workspace. */
export function outsideWorkspace(given: string): WorkspacePathError {
  return new WorkspacePathError(`The path ${JSON.stringify(given)} is not in the workspace`, {
    remedy: "Use a path relative to the workspace, without `..` and not through a symbolic link that leaves it.",
  });
}

function slashed(given: string): string {
  return process.platform === "win32" ? given.replaceAll("\\", "/") : given;
}
