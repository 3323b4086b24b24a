import type { CodeExecutor, ComponentModel } from "@fenced/core";
import { ExecutorPool } from "@fenced/pool";
import { loadExecutor } from "./load-executor.ts";
import type { CliOptions } from "./parse-options.ts";

/** Where the sessions of a server have their executors from. */
export interface SessionExecutors extends AsyncDisposable {
  /** One that no other session has or had. */
  create(signal: AbortSignal): Promise<CodeExecutor>;
}

/** Executors that are made for each session, or that wait for one if `--pool` asks for it. */
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
  // Before anybody needs them; what keeps them from starting is said, and tried again.
  pool.start().catch(onError);
  return {
    create: async (signal) => (await pool.acquire({ signal })).executor,
    [Symbol.asyncDispose]: () => pool.drain({ graceMs: 0 }),
  };
}
