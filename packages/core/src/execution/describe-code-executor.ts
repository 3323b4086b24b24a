import type { HostFunction } from "../functions/host/host-function.ts";
import type { CodeExecutor } from "./code-executor.ts";

/**
 * Describes an executor to a model that can call it as a tool: what it returns, its languages, what survives from call
 * to call, and the functions that code can import.
 *
 * @param languages - the languages to offer. Default: all of the executor's.
 * @param functions - functions that each call adds to the executor's own. Default: none.
 */
export function describeCodeExecutor(
  executor: CodeExecutor,
  languages: readonly string[] = executor.capabilities.languages,
  functions: readonly HostFunction[] = [],
): string {
  const parts = [
    `Runs code and returns what it prints. Languages: ${languages.join(", ")}.`,
    executor.capabilities.stateful
      ? "Variables survive from call to call."
      : "Each call starts afresh; only files survive.",
    executor.formatFunctionsForPrompt(undefined, { functions }),
  ];
  return parts.filter((part) => part !== "").join(" ");
}
