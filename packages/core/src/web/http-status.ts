import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { ExecutorStoppedError } from "../errors/executor-stopped-error.ts";
import { FileNotFoundError } from "../errors/file-not-found-error.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import { QuotaExceededError } from "../errors/quota-exceeded-error.ts";
import { RunNotFoundError } from "../errors/run-not-found-error.ts";
import { SessionInUseError } from "../errors/session-in-use-error.ts";
import { WorkspacePathError } from "../errors/workspace-path-error.ts";

/**
 * Returns the HTTP status for an error: 400 for invalid input and for paths out of the workspace, 404 for a missing
 * file or run, 409 for a session that another program uses, 410 for a stopped executor or session, 429 for a quota, 503
 * for an unreachable backend, and 500 for everything else.
 *
 * @example
 * app.onError((error, context) => context.json(toJson(error), httpStatus(error)));
 */
export function httpStatus(error: unknown): 400 | 404 | 409 | 410 | 429 | 500 | 503 {
  if (InvalidInputError.isInstance(error) || WorkspacePathError.isInstance(error)) return 400;
  if (FileNotFoundError.isInstance(error) || RunNotFoundError.isInstance(error)) return 404;
  if (SessionInUseError.isInstance(error)) return 409;
  if (ExecutorStoppedError.isInstance(error)) return 410;
  if (QuotaExceededError.isInstance(error)) return 429;
  return BackendUnavailableError.isInstance(error) ? 503 : 500;
}
