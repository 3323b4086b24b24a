import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.quota_exceeded");

/** A limit of a service is reached: sessions, or runs that wait. Nothing was started; the same call may succeed later. */
export class QuotaExceededError extends FencedError {
  readonly code = "quota_exceeded" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is QuotaExceededError {
    return hasErrorMarker(value, marker);
  }
}
