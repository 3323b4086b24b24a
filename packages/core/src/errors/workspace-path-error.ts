import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.path_outside_workspace");

/**
 * A path given to `WorkspaceFiles` leads out of the workspace: through `..`, a symbolic link, or because it is
 * absolute.
 */
export class WorkspacePathError extends FencedError {
  readonly code = "path_outside_workspace" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is WorkspacePathError {
    return hasErrorMarker(value, marker);
  }
}
