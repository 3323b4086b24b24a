import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.function_setup_failed");

/**
 * A user function did not load in the session, or a package that it requires could not be installed. The message says
 * why.
 */
export class FunctionSetupError extends FencedError {
  readonly code = "function_setup_failed" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is FunctionSetupError {
    return hasErrorMarker(value, marker);
  }
}
