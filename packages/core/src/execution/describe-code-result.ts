import type { CodeResult } from "./code-result.ts";
import type { Display } from "./display.ts";

/**
 * Describes a result to a model or a person: the output itself if all went well; a plain sentence with the exit code if
 * something failed or nothing was printed; and anything else the reader needs to know.
 *
 * @param blockCount - the number of blocks in the call, whether or not all of them ran.
 */
export function describeCodeResult(result: CodeResult, blockCount: number): string {
  const parts = [describeEnd(result, blockCount), ...describeCircumstances(result)];
  return parts.length === 1 ? parts.join("") : parts.map((part) => part.trimEnd()).join("\n\n");
}

/**
 * The names of the files to which displays were saved, without the host's directories: models, and people in a browser,
 * can do nothing with those, and learn from them what the host looks like.
 */
export function savedFileNames(displays: readonly Display[]): string[] {
  return displays.flatMap(({ files }) => files.map((file) => file.replace(/^.*[\\/]/s, "")));
}

/** Refused requests to list; a program that tries many hosts would fill a page. */
const mostRefusals = 10;

function describeEnd(result: CodeResult, blockCount: number): string {
  const { exitCode, output } = result;
  const printed = output.trim() !== "";
  if (exitCode === 0) return printed ? output : "The code ran and printed nothing (exit code 0).";
  const end = result.timedOut
    ? `timed out after ${seconds(result)} and was killed (exit code ${exitCode})`
    : `failed with exit code ${exitCode}`;
  const sentence = `${subject(result, blockCount)} ${end}.`;
  return printed ? `${sentence} Its output:\n${output}` : `${sentence} It printed nothing.`;
}

function subject({ blocks }: CodeResult, blockCount: number): string {
  if (blockCount <= 1 || blocks.length === 0) return "The code";
  const skipped = blockCount - blocks.length;
  return `Block ${blocks.length} of ${blockCount}${skipped > 0 ? ` (the last ${skipped} did not run)` : ""}`;
}

function seconds({ blocks, durationMs }: CodeResult): string {
  return `${((blocks.at(-1)?.durationMs ?? durationMs) / 1000).toFixed(1)} s`;
}

function describeCircumstances({ truncated, stateLost, network, displays }: CodeResult): string[] {
  const files = savedFileNames(displays);
  const refused = [...new Set(network?.map(({ reason }) => reason ?? ""))].slice(0, mostRefusals);
  return [
    ...(truncated ? ["The output was longer than the limit: its middle is left out."] : []),
    ...(stateLost ? ["The session was restarted: variables and imports of earlier code are gone."] : []),
    ...(refused.length > 0 ? [`Requests were refused:\n${refused.join("\n")}`] : []),
    ...(files.length > 0 ? [`Saved files:\n${files.join("\n")}`] : []),
  ];
}
