import { FencedError, hasErrorCode } from "./fenced-error.ts";

/**
 * A service's limit on sessions or on waiting runs is reached. Nothing was started; the same call may succeed later.
 */
export class QuotaExceededError extends FencedError {
  readonly code = "quota_exceeded" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is QuotaExceededError {
    return hasErrorCode(value, "quota_exceeded");
  }
}
