import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.path_outside_workspace");

/** A path given to `WorkspaceFiles` leads out of the workspace: `..`, absolute, or through a symbolic link. */
export class WorkspacePathError extends FencedError {
  readonly code = "path_outside_workspace" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is WorkspacePathError {
    return hasErrorMarker(value, marker);
  }
}
