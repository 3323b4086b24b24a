import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** A model call failed, or its response could not be parsed. */
export class ModelClientError extends FencedError {
  readonly code = "model_failed" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ModelClientError {
    return hasErrorCode(value, "model_failed");
  }
}
