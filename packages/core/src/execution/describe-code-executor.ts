import type { HostFunction } from "../functions/host/host-function.ts";
import type { CodeExecutor } from "./code-executor.ts";
import { knownCapabilities } from "./known-capabilities.ts";

/**
 * Describes an executor to a model that can call it as a tool: what it returns, its languages, what survives from call
 * to call, and the functions that code can import. What the executor does not know before it has started is left out.
 *
 * @param languages - the languages to offer. Default: all of the executor's.
 * @param functions - functions that each call adds to the executor's own. Default: none.
 */
export function describeCodeExecutor(
  executor: CodeExecutor,
  languages?: readonly string[],
  functions: readonly HostFunction[] = [],
): string {
  const capabilities = knownCapabilities(executor);
  const offered = languages ?? capabilities?.languages ?? [];
  const parts = [
    "Runs code and returns what it prints.",
    offered.length === 0 ? "" : `Languages: ${offered.join(", ")}.`,
    capabilities ? whatSurvives(capabilities.stateful) : "",
    capabilities ? executor.formatFunctionsForPrompt(undefined, { functions }) : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}

function whatSurvives(stateful: boolean): string {
  return stateful ? "Variables survive from call to call." : "Each call starts afresh; only files survive.";
}
