import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.backend_unavailable");

/** The place where the code should run (a program, a daemon, a server, a service) cannot be reached or broke down. */
export class BackendUnavailableError extends FencedError {
  readonly code = "backend_unavailable" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is BackendUnavailableError {
    return hasErrorMarker(value, marker);
  }
}
