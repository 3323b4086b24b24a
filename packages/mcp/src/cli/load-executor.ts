import { type CodeExecutor, ComponentError, type ComponentModel, FencedError, loadComponent } from "@fenced/core";
import { executorPackage } from "./executor-model.ts";
import { onCommandLine } from "./own-words.ts";
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
    const { cause } = error;
    if (options.executor !== undefined && FencedError.isInstance(cause)) {
      throw new UsageError(onCommandLine(cause), { cause: error });
    }
    throw new UsageError(`${error.message.slice(0, -error.remedy.length)}${remedy(error, model, options)}`, {
      cause: error,
    });
  }
}

/** The remedy, for the command line. */
function remedy(error: ComponentError, { provider }: ComponentModel, { executor }: CliOptions): string {
  const { option, cause } = error;
  if (option === "allow") {
    return `If you trust that package, allow it with --allow-package ${provider.split(":")[0]}: importing it runs its code.`;
  }
  // A user who started the server with npx has no project to install packages into.
  const isMissing = cause instanceof Error && "code" in cause && cause.code === "FENCED_PACKAGE_MISSING";
  if (executor === undefined || executor === "auto") return error.remedy;
  if (!isMissing) {
    return `Correct --config or the option of the command line; the README of ${executorPackage(executor)} lists all options.`;
  }
  const command = `npx -y -p @fenced/mcp -p ${executorPackage(executor)} fenced-mcp --executor ${executor}`;
  return `${error.remedy}\nOr start the server with: ${command}`;
}
