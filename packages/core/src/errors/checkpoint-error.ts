import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** A checkpoint does not exist, or something that it needs is missing from its store or damaged. */
export class CheckpointError extends FencedError {
  readonly code = "checkpoint" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is CheckpointError {
    return hasErrorCode(value, "checkpoint");
  }
}
