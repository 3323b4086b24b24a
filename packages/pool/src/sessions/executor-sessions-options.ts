import {
  type CheckpointStore,
  type CodeExecutor,
  InvalidInputError,
  type RestoreOption,
  type SessionHandle,
} from "@fenced/core";
import {
  callbackOption,
  objectOption,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import type { SessionDirectory } from "../directory/session-directory.ts";

/** Options of `ExecutorSessions`. */
export interface ExecutorSessionsOptions {
  /**
   * Creates the executor of a key. Return a new one each time: `ExecutorSessions` starts it, owns it and disposes of
   * it.
   *
   * @param signal - aborted if the session ends before its executor exists.
   * @param restore - the checkpoint with which it must start, which is the option `restore` of all executors;
   * `undefined` for a new session, and always without `checkpoints`.
   */
  readonly create: (
    key: string,
    signal: AbortSignal,
    restore: RestoreOption | undefined,
  ) => CodeExecutor | Promise<CodeExecutor>;
  /**
   * Says which process has the session of which key: `redisDirectory(client)` of `@fenced/pool/redis`, or
   * `postgresDirectory(pool)` of `@fenced/pool/postgres`, the same in all processes. Any of them then serves any key.
   * Default: `memoryDirectory()`, for one process.
   */
  readonly directory?: SessionDirectory | undefined;
  /**
   * A store of `@fenced/checkpoints`, the same in all processes, for sessions that move to another process, or come
   * back. Each session has one checkpoint: the next one replaces it, and `end(key)` deletes it. `store.sweep()` frees the
   * space. Default: sessions are not kept.
   */
  readonly checkpoints?: CheckpointStore | undefined;
  /**
   * What happens to a session that is idle: `end` loses its state, `checkpoint` keeps files and Python variables for
   * its next call. Default: `checkpoint` with `checkpoints`, otherwise `end`.
   */
  readonly onIdle?: "end" | "checkpoint" | undefined;
  /**
   * What `drain()` does with each session: in the same words, and `detach` leaves it to the process that gets its next
   * call, with everything in it, also when it moves: otherwise, it moves by a checkpoint. That needs executors with
   * `keepAliveMs`, longer than `leaseMs`. Default: `checkpoint` with `checkpoints`, otherwise `end`.
   */
  readonly onDrain?: "end" | "checkpoint" | "detach" | undefined;
  /**
   * Connects to a session of an executor with `keepAliveMs` whose process has left it, or was killed. Default:
   * `connectExecutor(handle, { takeOver: true, signal })`; your own passes functions and approvals as well.
   */
  readonly connect?: ((key: string, handle: SessionHandle, signal?: AbortSignal) => Promise<CodeExecutor>) | undefined;
  /**
   * Take a checkpoint after each run and each change of a file, before its result is returned. Then a process that is
   * killed loses only the call in progress. Costs a listing of the workspace and what has changed. Default: false.
   */
  readonly checkpointAfterRuns?: boolean | undefined;
  /**
   * How long a process that does not answer keeps its sessions, in milliseconds; each renews its hold three times as
   * often. At least 500. Default: 15,000.
   */
  readonly leaseMs?: number | undefined;
  /**
   * How long a call waits for a session that another process holds, which hands it over when no call is running there,
   * in milliseconds. Default: 60,000.
   */
  readonly handoverTimeoutMs?: number | undefined;
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
   * Receives errors that no caller waits for: an executor that could not be stopped, a checkpoint that failed, a
   * directory that did not answer, an error in `onSessionLost`. Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const keepOption = z.enum(["end", "checkpoint"]);

/** @throws InvalidInputError if sessions could not be kept as they should. */
export function assertKept({ checkpoints, ...options }: ExecutorSessionsOptions): void {
  if (checkpoints) return;
  for (const option of ["onIdle", "onDrain", "checkpointAfterRuns"] as const) {
    if (options[option] !== "checkpoint" && options[option] !== true) continue;
    throw new InvalidInputError(
      `ExecutorSessions: ${option}: ${JSON.stringify(options[option])} needs \`checkpoints\``,
      {
        remedy: "Pass a store of @fenced/checkpoints, such as `checkpoints: directoryStore(path)`.",
        option: "checkpoints",
      },
    );
  }
}

/** Whether sessions can move to another process with what they have. */
export function canMove({ checkpoints, onDrain }: ExecutorSessionsOptions): boolean {
  return checkpoints !== undefined || onDrain === "detach";
}

/** Validates the options. */
export const executorSessionsOptions: z.ZodType<ExecutorSessionsOptions> = optionsSchema({
  create: callbackOption<ExecutorSessionsOptions["create"]>(),
  directory: objectOption<SessionDirectory>(
    ["acquire", "renew", "update", "release", "listen"],
    "a directory of sessions, such as redisDirectory(client)",
  ).exactOptional(),
  checkpoints: objectOption<CheckpointStore>(
    ["begin", "open"],
    "a store of @fenced/checkpoints, such as directoryStore(path)",
  ).exactOptional(),
  onIdle: keepOption.exactOptional(),
  onDrain: z.enum(["end", "checkpoint", "detach"]).exactOptional(),
  connect: callbackOption<NonNullable<ExecutorSessionsOptions["connect"]>>().exactOptional(),
  checkpointAfterRuns: z.boolean().exactOptional(),
  leaseMs: wholeNumberOption({ from: 500 }).exactOptional(),
  handoverTimeoutMs: timeLimitOption.exactOptional(),
  idleTimeoutMs: timeLimitOption.exactOptional(),
  maxSessions: wholeNumberOption({ from: 1 }).exactOptional(),
  maxRunningPerKey: wholeNumberOption({ from: 1 }).exactOptional(),
  maxWaiting: wholeNumberOption({ from: 0 }).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  stopTimeoutMs: timeLimitOption.exactOptional(),
  onSessionLost: callbackOption<(key: string, reason: string) => void>().exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<ExecutorSessionsOptions>);
