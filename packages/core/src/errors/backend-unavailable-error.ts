import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** The backend that should run the code (a program, a daemon, a server, a service) cannot be reached or has failed. */
export class BackendUnavailableError extends FencedError {
  readonly code = "backend_unavailable" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is BackendUnavailableError {
    return hasErrorCode(value, "backend_unavailable");
  }
}
