import type { CodeResult } from "@fenced/core";
import { LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { onTestFinished } from "vitest";

/** An executor that is stopped when the test ends. */
export function executorWith(options: LocalExecutorOptions = {}): LocalCommandLineCodeExecutor {
  const executor = new LocalCommandLineCodeExecutor(options);
  onTestFinished(async () => executor.stop());
  return executor;
}

/** Runs a block in a new executor. */
export async function run(options: LocalExecutorOptions, language: string, code: string): Promise<CodeResult> {
  return executorWith(options).executeCodeBlocks([{ language, code }]);
}
