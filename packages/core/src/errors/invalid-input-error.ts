import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.invalid_input");

/** The caller made a mistake, such as no blocks, a timeout of -1 or a module name that is not an identifier. */
export class InvalidInputError extends FencedError {
  readonly code = "invalid_input" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is InvalidInputError {
    return hasErrorMarker(value, marker);
  }
}
