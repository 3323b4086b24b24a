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

/** An executor with the OS sandbox, which the test stops. */
export function sandboxed(options: LocalExecutorOptions = {}): LocalCommandLineCodeExecutor {
  return new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", ...options });
}

/** Runs a block; returns its output. */
export async function printed(executor: LocalCommandLineCodeExecutor, language: string, code: string): Promise<string> {
  const { output } = await executor.executeCodeBlocks([{ language, code }]);
  return output;
}
