import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.model_failed");

/** A model call failed, or its answer cannot be understood. */
export class ModelClientError extends FencedError {
  readonly code = "model_failed" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is ModelClientError {
    return hasErrorMarker(value, marker);
  }
}
