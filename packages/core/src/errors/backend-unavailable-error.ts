import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.backend_unavailable");

/** The backend that should run the code (a program, a daemon, a server, a service) cannot be reached or has failed. */
export class BackendUnavailableError extends FencedError {
  readonly code = "backend_unavailable" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is BackendUnavailableError {
    return hasErrorMarker(value, marker);
  }
}
