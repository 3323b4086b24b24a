import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { ExecutorStoppedError } from "../errors/executor-stopped-error.ts";
import { FileNotFoundError } from "../errors/file-not-found-error.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { QuotaExceededError } from "../errors/quota-exceeded-error.ts";
import { WorkspacePathError } from "../errors/workspace-path-error.ts";

/**
 * The HTTP status to answer an error with: 400 for wrong input and for paths out of the workspace, 404 for a file that is not
 * there, 410 for an executor or session that was stopped, 429 for a quota, 503 for a backend that cannot be reached, and 500
 * for everything else.
 *
 * @example
 * app.onError((error, context) => context.json(toJson(error), httpStatus(error)));
 */
export function httpStatus(error: unknown): 400 | 404 | 410 | 429 | 500 | 503 {
  if (InvalidInputError.isInstance(error) || WorkspacePathError.isInstance(error)) return 400;
  if (FileNotFoundError.isInstance(error)) return 404;
  if (ExecutorStoppedError.isInstance(error)) return 410;
  if (QuotaExceededError.isInstance(error)) return 429;
  return BackendUnavailableError.isInstance(error) ? 503 : 500;
}
