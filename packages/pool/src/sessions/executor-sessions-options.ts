import type { CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import type * as z from "zod";

/** Options of `ExecutorSessions`. */
export interface ExecutorSessionsOptions {
  /**
   * Creates the executor of a key. Return a new one each time: `ExecutorSessions` starts it, owns it and disposes of
   * it.
   *
   * @param signal - aborted if the session ends before its executor exists.
   */
  readonly create: (key: string, signal: AbortSignal) => CodeExecutor | Promise<CodeExecutor>;
  /** Milliseconds without a run or a file operation after which a session ends. `Infinity`: never. Default: 600,000. */
  readonly idleTimeoutMs?: number | undefined;
  /** Maximum number of sessions, including those that are starting or stopping. Default: 32. */
  readonly maxSessions?: number | undefined;
  /** Number of runs of one key that may execute at the same time; others wait their turn. Default: 1. */
  readonly maxRunningPerKey?: number | undefined;
  /** Maximum number of a key's waiting runs; one more is refused. Default: 8. */
  readonly maxWaiting?: number | undefined;
  /**
   * Time limit for `create` and the executor's start together in milliseconds. `Infinity`: no limit. Default: 120,000.
   */
  readonly startTimeoutMs?: number | undefined;
  /** How long to wait for an executor to stop, in milliseconds. `Infinity`: no limit. Default: 60,000. */
  readonly stopTimeoutMs?: number | undefined;
  /**
   * Called at once when the state of a key's session is lost unexpectedly, even while nothing runs; the next result
   * reports it, too. An executor without `CodeExecutor.onSessionLost` is only noticed by the next run.
   */
  readonly onSessionLost?: ((key: string, reason: string) => void) | undefined;
  /**
   * Receives errors that no caller waits for: an executor that could not be stopped, an error in `onSessionLost`.
   * Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Validates the options. */
export const executorSessionsOptions: z.ZodType<ExecutorSessionsOptions> = optionsSchema({
  create: callbackOption<ExecutorSessionsOptions["create"]>(),
  idleTimeoutMs: timeLimitOption.exactOptional(),
  maxSessions: wholeNumberOption({ from: 1 }).exactOptional(),
  maxRunningPerKey: wholeNumberOption({ from: 1 }).exactOptional(),
  maxWaiting: wholeNumberOption({ from: 0 }).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  stopTimeoutMs: timeLimitOption.exactOptional(),
  onSessionLost: callbackOption<(key: string, reason: string) => void>().exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<ExecutorSessionsOptions>);
