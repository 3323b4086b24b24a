import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.quota_exceeded");

/**
 * A service's limit on sessions or on waiting runs is reached. Nothing was started; the same call may succeed later.
 */
export class QuotaExceededError extends FencedError {
  readonly code = "quota_exceeded" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is QuotaExceededError {
    return hasErrorMarker(value, marker);
  }
}
