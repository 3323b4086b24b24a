import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** A component cannot be dumped without losing something, or a component model cannot be loaded. */
export class ComponentError extends FencedError {
  readonly code = "component_invalid" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ComponentError {
    return hasErrorCode(value, "component_invalid");
  }
}
