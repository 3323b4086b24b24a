import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.executor_stopped");

/** The executor was stopped before this call, or stopped or restarted while it was under way. Nothing of the call is running. */
export class ExecutorStoppedError extends FencedError {
  readonly code = "executor_stopped" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is ExecutorStoppedError {
    return hasErrorMarker(value, marker);
  }
}
