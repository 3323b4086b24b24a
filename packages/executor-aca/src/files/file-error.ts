import { FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { explainError } from "../http/explain-error.ts";
import { ServiceError } from "../http/service-error.ts";

/** What the service says about a file, as the errors that `WorkspaceFiles` promises. */
export function fileError(error: unknown, file: string): unknown {
  if (!(error instanceof ServiceError) || error.isCapacity || error.isSessionGone) return explainError(error);
  if (error.status === 404) {
    return new FileNotFoundError(`There is no file ${JSON.stringify(file)} in the session`, {
      remedy: "`files.list()` says which files there are.",
      cause: error,
    });
  }
  if (error.status !== 400) return explainError(error);
  if (/path|traversal/i.test(error.code)) return outsideWorkspace(file, error);
  return new InvalidInputError(`The session does not take the file name ${JSON.stringify(file)} (${error.reason})`, {
    remedy: "Name a regular file; `files.list()` says which there are.",
    cause: error,
  });
}

function outsideWorkspace(file: string, cause: unknown): WorkspacePathError {
  return new WorkspacePathError(`The path ${JSON.stringify(file)} is not in the workspace`, {
    remedy: "Use a path relative to /mnt/data, without `..` and not through a symbolic link that leaves it.",
    cause,
  });
}
