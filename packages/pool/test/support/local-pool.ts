import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { onTestFinished } from "vitest";
import { ExecutorPool, type ExecutorPoolOptions, type PoolExecutorContext } from "../../src/index.ts";

export const localExecutor = ({ onSessionLost }: Pick<PoolExecutorContext, "onSessionLost">) =>
  new LocalCommandLineCodeExecutor({ onSessionLost });

/** A pool of local executors, drained with the test. */
export function localPool(options: Partial<ExecutorPoolOptions> = {}): ExecutorPool {
  const pool = new ExecutorPool({ create: localExecutor, min: 0, ...options });
  onTestFinished(() => pool.drain({ graceMs: 0 }));
  return pool;
}

/** The counts of a pool of which nothing is left. */
export const nothing = { ready: 0, starting: 0, leased: 0, ending: 0, waiting: 0 };
