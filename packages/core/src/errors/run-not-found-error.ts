import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** There is no submitted run with this id, or it is no longer kept. */
export class RunNotFoundError extends FencedError {
  readonly code = "run_not_found" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is RunNotFoundError {
    return hasErrorCode(value, "run_not_found");
  }
}
