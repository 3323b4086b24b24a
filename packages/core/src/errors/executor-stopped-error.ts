import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.executor_stopped");

/**
 * The executor was stopped before this call, or stopped or restarted during it. Nothing that the call started is
 * running.
 */
export class ExecutorStoppedError extends FencedError {
  readonly code = "executor_stopped" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is ExecutorStoppedError {
    return hasErrorMarker(value, marker);
  }
}
