import { FencedError, hasErrorCode } from "./fenced-error.ts";

/**
 * A user function did not load in the session, or a package that it requires could not be installed. The message says
 * why.
 */
export class FunctionSetupError extends FencedError {
  readonly code = "function_setup_failed" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is FunctionSetupError {
    return hasErrorCode(value, "function_setup_failed");
  }
}
