import { FencedError, hasErrorCode } from "./fenced-error.ts";

/**
 * A path given to `WorkspaceFiles` leads out of the workspace: through `..`, a symbolic link, or because it is
 * absolute.
 */
export class WorkspacePathError extends FencedError {
  readonly code = "path_outside_workspace" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is WorkspacePathError {
    return hasErrorCode(value, "path_outside_workspace");
  }
}
