import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.component_invalid");

/** A component cannot be dumped without losing something, or a component model cannot be loaded. */
export class ComponentError extends FencedError {
  readonly code = "component_invalid" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ComponentError {
    return hasErrorMarker(value, marker);
  }
}
