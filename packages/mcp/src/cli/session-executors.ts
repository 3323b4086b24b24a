import type { CodeExecutor, ComponentModel } from "@fenced/core";
import { ExecutorPool } from "@fenced/pool";
import { loadExecutor } from "./load-executor.ts";
import type { CliOptions } from "./parse-options.ts";

/** Provides the executors of a server's sessions. */
export interface SessionExecutors extends AsyncDisposable {
  /** Creates an executor that no other session has or had. */
  create(signal: AbortSignal): Promise<CodeExecutor>;
}

/** Executors that are created for each session or, with `--pool`, kept ready for one. */
export function sessionExecutors(
  model: ComponentModel,
  options: CliOptions,
  onError: (error: unknown) => void,
): SessionExecutors {
  const { pool: min, maxSessions } = options;
  const load = (): Promise<CodeExecutor> => loadExecutor(model, options);
  if (min === undefined) return { create: load, [Symbol.asyncDispose]: async () => {} };
  const max = maxSessions + min;
  const pool = new ExecutorPool({ create: load, min, max, maxWaiting: maxSessions, onError });
  // Starts before anyone needs them; failures are reported, and the start is retried.
  pool.start().catch(onError);
  return {
    create: async (signal) => (await pool.acquire({ signal })).executor,
    [Symbol.asyncDispose]: () => pool.drain({ graceMs: 0 }),
  };
}
