import type { CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import type * as z from "zod";

/** What `ExecutorSessions` is made from. */
export interface ExecutorSessionsOptions {
  /**
   * Makes the executor of a key. It is started, owned and disposed of here, so make a new one each time.
   *
   * @param signal - aborted if the session is ended before its executor is there.
   */
  readonly create: (key: string, signal: AbortSignal) => CodeExecutor | Promise<CodeExecutor>;
  /** Milliseconds without a run or a file operation after which a session ends. `Infinity`: never. Default: 600,000. */
  readonly idleTimeoutMs?: number;
  /** Sessions at a time, those included that start or stop. Default: 32. */
  readonly maxSessions?: number;
  /** Runs of one key at a time; more of them wait their turn. Default: 1. */
  readonly maxRunningPerKey?: number;
  /** Runs of one key that wait their turn; one more is refused. Default: 8. */
  readonly maxWaiting?: number;
  /** Milliseconds that `create` and the executor's start may take together. `Infinity`: no limit. Default: 120,000. */
  readonly startTimeoutMs?: number;
  /** Milliseconds after which nobody waits any more for an executor that does not stop. `Infinity`: no limit. Default: 60,000. */
  readonly stopTimeoutMs?: number;
  /** Told at once that what a key had in its session is gone without anybody having asked for it; the next result says it, too. */
  readonly onSessionLost?: (key: string, reason: string) => void;
  /** Gets what nobody waits for: an executor that could not be stopped, an error in `onSessionLost`. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

/** Checks the options. */
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
