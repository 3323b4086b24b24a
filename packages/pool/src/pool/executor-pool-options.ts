import type { CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  checkOptions,
  type GivenOptions,
  optionsSchema,
  signalOption,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";

/** What `create` receives about the executor to create. */
export interface PoolExecutorContext {
  /** Aborted if the executor is no longer wanted. */
  readonly signal: AbortSignal;
  /**
   * Tells the pool at once that the executor's container, kernel or host broke down, so that the pool replaces it. Only
   * for an executor of your own without `CodeExecutor.onSessionLost`: for others the pool knows, and otherwise it finds
   * out at its next check (`checkIntervalMs`).
   */
  readonly onSessionLost: (reason: string) => void;
}

/** Options of `ExecutorPool`. */
export interface ExecutorPoolOptions {
  /** Creates a new executor. The pool starts it, owns it and disposes of it. */
  readonly create: (context: PoolExecutorContext) => CodeExecutor | Promise<CodeExecutor>;
  /** Number of started executors to keep ready for the next callers, as far as `max` allows. Default: 1. */
  readonly min?: number | undefined;
  /**
   * Maximum number of executors, including those in use, starting or stopping. Default: 8, or `min` if that is more.
   */
  readonly max?: number | undefined;
  /** Idle time in milliseconds after which executors beyond `min` are ended. `Infinity`: never. Default: 600,000. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Number of leases before an executor is replaced by a new one. If more than 1, the pool restarts the executor
   * between two leases, deletes the files that `files.list()` returns, and runs `warmUp` again; anything else that code
   * left behind stays for the next caller. Default: 1, so callers never share an executor.
   */
  readonly maxUses?: number | undefined;
  /** Maximum number of callers that wait while all executors are in use; one more is refused. Default: 100. */
  readonly maxWaiting?: number | undefined;
  /** Prepares a started executor for its first caller: imports, packages, files. */
  readonly warmUp?: ((executor: CodeExecutor, signal: AbortSignal) => Promise<void>) | undefined;
  /**
   * Time limit for `create`, the start and `warmUp` together in milliseconds. `Infinity`: no limit. Default: 120,000.
   */
  readonly startTimeoutMs?: number | undefined;
  /** How long to wait for an executor to stop, in milliseconds. `Infinity`: no limit. Default: 60,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** Milliseconds after which an unreleased lease ends automatically. `Infinity`: never. Default: `Infinity`. */
  readonly maxLeaseMs?: number | undefined;
  /** Interval between checks of the idle executors in milliseconds. `Infinity`: no checks. Default: 30,000. */
  readonly checkIntervalMs?: number | undefined;
  /** Identifies this pool in telemetry. Default: `default`. */
  readonly name?: string | undefined;
  /**
   * Receives errors that no caller waits for: an executor that did not start in the background, or could not be
   * stopped; a forgotten lease. Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const poolOptions: z.ZodType<ExecutorPoolOptions> = optionsSchema({
  create: callbackOption<ExecutorPoolOptions["create"]>(),
  min: wholeNumberOption({ from: 0 }).exactOptional(),
  max: wholeNumberOption({ from: 1 }).exactOptional(),
  idleTimeoutMs: timeLimitOption.exactOptional(),
  maxUses: wholeNumberOption({ from: 1 }).exactOptional(),
  maxWaiting: wholeNumberOption({ from: 0 }).exactOptional(),
  warmUp: callbackOption<NonNullable<ExecutorPoolOptions["warmUp"]>>().exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  stopTimeoutMs: timeLimitOption.exactOptional(),
  maxLeaseMs: timeLimitOption.exactOptional(),
  checkIntervalMs: timeLimitOption.exactOptional(),
  name: z.string().min(1).exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<ExecutorPoolOptions>).check(({ value, issues }) => {
  const { min = 0, max = Infinity } = value;
  if (min <= max) return;
  issues.push({ code: "custom", path: ["min"], input: min, message: `must be at most max, which is ${max}` });
});

/** Options of `acquire()`. */
export interface AcquireOptions {
  /** Cancels the wait. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with what `create` returned when it is leased, before its caller has it: to decide what its callbacks answer from now on, such as
   * those of a network policy. The pool owns it: do not use or keep it. If it throws, the executor is ended.
   */
  readonly onLease?: ((executor: CodeExecutor) => void) | undefined;
}

/** Checks these options. */
export const acquireOptions: z.ZodType<AcquireOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
  onLease: callbackOption<(executor: CodeExecutor) => void>().exactOptional(),
} satisfies OptionSchemas<AcquireOptions>);

/** Options of `start()`. */
export type PoolStartOptions = Pick<AcquireOptions, "signal">;

/** Checks these options. */
export const poolStartOptions: z.ZodType<PoolStartOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<PoolStartOptions>);

/** The options with their defaults filled in. */
export type PoolSettings = Required<GivenOptions<Omit<ExecutorPoolOptions, "warmUp">>> &
  GivenOptions<Pick<ExecutorPoolOptions, "warmUp">>;

/** Validates the options and fills in the defaults. */
export function poolSettings(options: ExecutorPoolOptions): PoolSettings {
  const checked = checkOptions(poolOptions, options, "ExecutorPool");
  const { min = Math.min(1, checked.max ?? 1) } = checked;
  return {
    max: Math.max(8, min),
    idleTimeoutMs: 600_000,
    maxUses: 1,
    maxWaiting: 100,
    startTimeoutMs: 120_000,
    stopTimeoutMs: 60_000,
    maxLeaseMs: Infinity,
    checkIntervalMs: 30_000,
    name: "default",
    onError: (error) => process.emitWarning(error instanceof Error ? error : String(error)),
    ...checked,
    min,
  };
}
