import type { CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  checkOptions,
  optionsSchema,
  signalOption,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";

/** What `create` is told of the executor that it makes. */
export interface PoolExecutorContext {
  /** Aborted if the executor is no longer wanted before it is there. */
  readonly signal: AbortSignal;
  /**
   * For the executor's option of the same name: the pool hears at once that its container, kernel or host broke down, and
   * replaces it. Without it, the pool finds out when it looks (`checkIntervalMs`), and an executor that repairs itself has
   * lost what `warmUp` did in it.
   */
  readonly onSessionLost: (reason: string) => void;
}

/** What `ExecutorPool` is made from. */
export interface ExecutorPoolOptions {
  /** Makes an executor, a new one each time. The pool starts it, owns it and disposes of it. */
  readonly create: (context: PoolExecutorContext) => CodeExecutor | Promise<CodeExecutor>;
  /** Executors that are kept started for the next callers, as far as `max` allows. Default: 1. */
  readonly min?: number;
  /** Executors at a time, those included that are in use, start or stop. Default: 8, or `min` if that is more. */
  readonly max?: number;
  /** Milliseconds without a caller after which an executor ends that is not among the `min`. `Infinity`: never. Default: 600,000. */
  readonly idleTimeoutMs?: number;
  /**
   * Leases of one executor, until it is replaced by a new one. With more than 1, it is restarted between two leases, the files
   * that `files.list()` names are deleted, and `warmUp` runs again; all else that code left in it stays for the next caller. Default: 1: nobody gets
   * what somebody else had.
   */
  readonly maxUses?: number;
  /** Callers that wait while all executors are in use; one more is refused. Default: 100. */
  readonly maxWaiting?: number;
  /** Makes a started executor ready for its first caller: imports, packages, files. */
  readonly warmUp?: (executor: CodeExecutor, signal: AbortSignal) => Promise<void>;
  /** Milliseconds that `create`, the start and `warmUp` may take together. `Infinity`: no limit. Default: 120,000. */
  readonly startTimeoutMs?: number;
  /** Milliseconds after which nobody waits any more for an executor that does not stop. `Infinity`: no limit. Default: 60,000. */
  readonly stopTimeoutMs?: number;
  /** Milliseconds after which a lease that was not released ends by itself. `Infinity`: never. Default: `Infinity`. */
  readonly maxLeaseMs?: number;
  /** Milliseconds between two looks at the executors that wait for a caller. `Infinity`: none. Default: 30,000. */
  readonly checkIntervalMs?: number;
  /** Tells this pool apart from others in telemetry. Default: `default`. */
  readonly name?: string;
  /**
   * Gets what nobody waits for: an executor that did not start while nobody waited for one, or could not be stopped; a lease that
   * was forgotten. Default: a process warning.
   */
  readonly onError?: (error: unknown) => void;
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

/** How an executor is asked for. */
export interface AcquireOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

const acquireOptions: z.ZodType<AcquireOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<AcquireOptions>);

/** The options with their defaults. */
export type PoolSettings = Required<Omit<ExecutorPoolOptions, "warmUp">> & Pick<ExecutorPoolOptions, "warmUp">;

/** Checks the options, and fills in the defaults. */
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

/** @throws InvalidInputError if an option is unknown or wrong. */
export function checkAcquire(options: AcquireOptions, method: "acquire" | "start"): AcquireOptions {
  return checkOptions(acquireOptions, options, method);
}
