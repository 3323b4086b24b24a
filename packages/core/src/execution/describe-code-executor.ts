import type { HostFunction } from "../functions/host/host-function.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { ExecutorCapabilities } from "./executor-capabilities.ts";
import { knownCapabilities } from "./known-capabilities.ts";

/**
 * Describes an executor to a model that can call it as a tool: what it returns, its languages, what survives from call
 * to call, what its network reaches, which packages are installed, and the functions that code can import. What the executor does not know before it has started is left out.
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
    ...(capabilities ? describePlace(capabilities) : []),
    capabilities ? executor.formatFunctionsForPrompt(undefined, { functions }) : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Names to list; a model that wants another one can try it. */
const mostNames = 60;

function describePlace({ stateful, network, packages, languages }: ExecutorCapabilities): string[] {
  return [
    whatSurvives(stateful),
    network === undefined ? "" : whatIsReached(network),
    packages === undefined || !languages.includes("python") ? "" : whatIsInstalled(packages),
  ];
}

function whatIsReached(network: NonNullable<ExecutorCapabilities["network"]>): string {
  if (network === "open") return "The code has network access.";
  if (network === "none" || network.length === 0) {
    return "The code has no network access: it cannot download or install anything.";
  }
  return `The code's network reaches only ${names(network)}.`;
}

function whatIsInstalled(packages: readonly string[]): string {
  if (packages.length === 0) return "Python has only its standard library.";
  return `Installed Python packages: ${names(packages)}.`;
}

function names(all: readonly string[]): string {
  const more = all.length - mostNames;
  return `${all.slice(0, mostNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function whatSurvives(stateful: boolean): string {
  return stateful ? "Variables survive from call to call." : "Each call starts afresh; only files survive.";
}
