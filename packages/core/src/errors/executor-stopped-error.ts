import { FencedError, hasErrorCode } from "./fenced-error.ts";

/**
 * The executor was stopped before this call, or stopped or restarted during it. Nothing that the call started is
 * running.
 */
export class ExecutorStoppedError extends FencedError {
  readonly code = "executor_stopped" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ExecutorStoppedError {
    return hasErrorCode(value, "executor_stopped");
  }
}
