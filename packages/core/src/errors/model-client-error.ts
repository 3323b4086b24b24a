import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.model_failed");

/** A model call failed, or its response could not be parsed. */
export class ModelClientError extends FencedError {
  readonly code = "model_failed" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ModelClientError {
    return hasErrorMarker(value, marker);
  }
}
