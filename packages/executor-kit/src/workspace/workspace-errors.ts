import { BackendUnavailableError, FencedError, FileNotFoundError, InvalidInputError } from "@fenced/core";
import { unusableName } from "./path-bytes.ts";
import { creationRemedy, refusalRemedy } from "./refusal-remedy.ts";
import { outsideWorkspace } from "./workspace-path.ts";

/** The `code` of a system error, such as `"ENOENT"`; `undefined` if it has none. */
export function errorCode(error: unknown): string | undefined {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : undefined;
}

/**
 * Converts a file system error for a workspace path to one of the errors that `WorkspaceFiles` promises. Only its
 * `code` matters: `ENOENT`, `EISDIR`, `ELOOP` (the path leads out), `EEXIST` (a part of it is a file), `ESTALE` (it is not
 * the file that was written), `ENOTEMPTY` (what is there cannot be replaced), `EXDEV` (it is on another file system),
 * `E2BIG`, `ENOSYS` (it cannot be watched).
 */
export function asWorkspaceError(error: unknown, given: string): unknown {
  if (FencedError.isInstance(error)) return error;
  const code = errorCode(error);
  if (code === "ELOOP" || code === "EMLINK") return outsideWorkspace(given);
  if (code === "ENXIO" || code === "EISDIR") return notAFile(given);
  if (code === "ENAMETOOLONG" || code === "EILSEQ") return unusableName(given);
  if (code === "EEXIST") return belowFile(given);
  if (code === "ENOTEMPTY") return inTheWayOf(given);
  if (code === "EXDEV") return otherFileSystem(given);
  if (code === "ESTALE") return replacedMeanwhile(given, error);
  if (code === "E2BIG" || code === "ENOSYS") return cannotWatch(given, error);
  if (isDiskFull(error)) return diskFull(JSON.stringify(given), error);
  if (code !== "ENOENT" && code !== "ENOTDIR") return refused(error, given);
  return new FileNotFoundError(`There is no file ${JSON.stringify(given)} in the workspace`, {
    remedy: "`files.list()` shows which files there are.",
    cause: error,
  });
}

/** The error for a file that is not the one that was written. */
function replacedMeanwhile(given: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(given)} is not what was written: something replaced it meanwhile`, {
    remedy: "Write it again when no program changes files there; `restart()` ends those that still run.",
    cause,
  });
}

/** The error for a place to which nothing can be moved. */
export function inTheWayOf(given: string): InvalidInputError {
  return new InvalidInputError(`There already is something at ${JSON.stringify(given)} that cannot be replaced`, {
    remedy: "Only a file replaces a file: remove what is there with `files.remove()`, or choose another path.",
  });
}

/** The error for a directory that is too large to be watched, or where nothing can be. */
function cannotWatch(given: string, cause: unknown): InvalidInputError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new InvalidInputError(`${JSON.stringify(given)} cannot be watched: ${why}`, {
    remedy: "Watch a smaller directory, or without `recursive`; or call `files.list()` from time to time.",
    cause,
  });
}

/** The error for a path to which a file system cannot move something. */
function otherFileSystem(given: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(given)} is on another file system, so it cannot be moved`, {
    remedy: "Something is mounted in the workspace: copy it in a block (`cp -a`), then remove the original.",
  });
}

/**
 * The error for something that the place cannot do with files.
 *
 * @param what - an infinitive: `move files`.
 */
export function cannotDo(what: string): InvalidInputError {
  return new InvalidInputError(`The files of this executor have no way to ${what}`, {
    remedy: "Do it in a block. `capabilities.files` says what `files` can do.",
  });
}

/** The error for a path that is not a regular file. */
export function notAFile(given: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(given)} is not a regular file`, {
    remedy: "Name a file; `files.list()` shows which there are.",
  });
}

/** The error for something else in the place of a workspace. */
export function workspaceReplaced(root: string): BackendUnavailableError {
  return new BackendUnavailableError(`The workspace ${root} was replaced by something else`, {
    remedy: "Code may have moved it: do not let the work directories of executors overlap. Stop the executor.",
  });
}

/** The error for a path below a file. */
export function belowFile(given: string): InvalidInputError {
  return new InvalidInputError(`A part of the path ${JSON.stringify(given)} is a file, not a directory`, {
    remedy: "Remove that file first, or choose another path.",
  });
}

/** True if the system had no space for a file, or the user's quota is used up; also for an error with that cause. */
export function isDiskFull(error: unknown): boolean {
  const code = errorCode(FencedError.isInstance(error) ? error.cause : error);
  return code === "ENOSPC" || code === "EDQUOT";
}

/**
 * The error for a full disk.
 *
 * @param what - what could not be written: a quoted path, `the block`.
 * @param cause - the system's error, if there is one.
 */
export function diskFull(what: string, cause: unknown = { code: "ENOSPC" }): BackendUnavailableError {
  return new BackendUnavailableError(`There is no space left for ${what}: the disk is full`, {
    remedy: "Remove what is not needed with `files.remove()` or in a block, then try again.",
    cause,
  });
}

/** The error for a work directory on this host that could not be created. */
export function directoryNotCreated(cause: unknown): BackendUnavailableError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new BackendUnavailableError(`The work directory could not be created: ${reason}`, {
    remedy: creationRemedy(errorCode(cause)),
    cause,
  });
}

function refused(cause: unknown, given: string): BackendUnavailableError {
  return new BackendUnavailableError(`The file system refused access to ${JSON.stringify(given)}: ${String(cause)}`, {
    remedy: refusalRemedy(errorCode(cause)),
    cause,
  });
}
