import type { ToolCall, ToolResult } from "@fenced/core";

/** Tool calls and their results as text, one after another, each in the given format. */
export function summarizeToolCalls(calls: readonly ToolCall[], results: readonly ToolResult[], format: string): string {
  return results.map((result, index) => fill(format, calls[index], result)).join("\n");
}

// In one pass, so that a placeholder inside a result stays text.
function fill(format: string, call: ToolCall | undefined, result: ToolResult): string {
  const values: Readonly<Record<string, string>> = {
    toolName: result.name,
    arguments: call?.arguments ?? "",
    result: result.content,
    isError: String(result.isError),
  };
  return format.replaceAll(/\{(toolName|arguments|result|isError)\}/g, (_, name: string) => values[name] ?? "");
}
