import { type CodeExecutor, ComponentError, type ComponentModel, loadComponent } from "@fenced/core";
import { executorPackage } from "./executor-model.ts";
import type { CliOptions } from "./parse-options.ts";
import { UsageError } from "./usage-error.ts";

/**
 * Creates the executor that a model describes.
 *
 * @throws UsageError if its package is not installed, or its settings are not valid.
 */
export async function loadExecutor(model: ComponentModel, options: CliOptions): Promise<CodeExecutor> {
  try {
    return await loadComponent<CodeExecutor>(model, { allow: options.allowPackage });
  } catch (error) {
    if (!ComponentError.isInstance(error)) throw error;
    throw new UsageError(error.message + hint(error, model, options), { cause: error });
  }
}

/** Translates a remedy for programmers to the command line. */
function hint({ option, cause }: ComponentError, { provider }: ComponentModel, { executor }: CliOptions): string {
  if (option === "allow") return `\nOn the command line: --allow-package ${provider.split(":")[0]}`;
  // A user who started the server with npx has no project to install packages into.
  const isMissing = cause instanceof Error && "code" in cause && cause.code === "FENCED_PACKAGE_MISSING";
  if (executor === undefined || executor === "auto" || !isMissing) return "";
  const command = `npx -y -p @fenced/mcp -p ${executorPackage(executor)} fenced-mcp --executor ${executor}`;
  return `\nOr start the server with: ${command}`;
}
