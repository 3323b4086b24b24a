import type { CodeExecutor } from "@fenced/core";
import { ExecutorPool } from "@fenced/pool";
import type { CliOptions } from "./parse-options.ts";

/** Provides the executors of a server's sessions. */
export interface SessionExecutors extends AsyncDisposable {
  /** Creates an executor that no other session has or had. */
  create(signal: AbortSignal): Promise<CodeExecutor>;
}

/** Executors that `create` makes for each session or, with `--pool`, keeps ready for one. */
export function sessionExecutors(
  create: (signal: AbortSignal) => Promise<CodeExecutor>,
  options: Pick<CliOptions, "pool" | "maxSessions">,
  onError: (error: unknown) => void,
): SessionExecutors {
  const { pool: min, maxSessions } = options;
  if (min === undefined) return { create, [Symbol.asyncDispose]: async () => {} };
  const max = maxSessions + min;
  const pool = new ExecutorPool({ create: ({ signal }) => create(signal), min, max, maxWaiting: maxSessions, onError });
  // Starts before anyone needs them; failures are reported, and the start is retried.
  pool.start().catch(onError);
  return {
    create: async (signal) => (await pool.acquire({ signal })).executor,
    [Symbol.asyncDispose]: () => pool.drain({ graceMs: 0 }),
  };
}
