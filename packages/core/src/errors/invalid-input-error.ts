import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** The caller made a mistake, such as no blocks, a timeout of -1 or a module name that is not an identifier. */
export class InvalidInputError extends FencedError {
  readonly code = "invalid_input" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is InvalidInputError {
    return hasErrorCode(value, "invalid_input");
  }
}
