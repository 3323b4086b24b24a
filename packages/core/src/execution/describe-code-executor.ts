import type { CodeExecutor } from "./code-executor.ts";

/**
 * What a model should know about an executor that it is offered as a tool: what comes back, the languages, what survives
 * from call to call, and the functions that code can import.
 *
 * @param languages - those that are offered. Default: all that the executor has.
 */
export function describeCodeExecutor(
  executor: CodeExecutor,
  languages: readonly string[] = executor.capabilities.languages,
): string {
  const parts = [
    `Runs code and returns what it prints. Languages: ${languages.join(", ")}.`,
    executor.capabilities.stateful
      ? "Variables survive from call to call."
      : "Each call starts afresh; only files survive.",
    executor.formatFunctionsForPrompt(),
  ];
  return parts.filter((part) => part !== "").join(" ");
}
