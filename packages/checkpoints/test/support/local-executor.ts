import { LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { onTestFinished } from "vitest";

/** An executor on this host that is stopped when the test has finished. */
export function localExecutor(options: LocalExecutorOptions = {}): LocalCommandLineCodeExecutor {
  const executor = new LocalCommandLineCodeExecutor(options);
  onTestFinished(() => executor[Symbol.asyncDispose]());
  return executor;
}
