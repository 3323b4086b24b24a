import type { ToolCall, ToolResult } from "@fenced/core";
import { fillPlaceholders } from "../common/fill-placeholders.ts";

/** Tool calls and their results as text, one after another, each in the given format. */
export function summarizeToolCalls(calls: readonly ToolCall[], results: readonly ToolResult[], format: string): string {
  const texts = results.map(({ name, content, isError }, index) =>
    fillPlaceholders(format, {
      toolName: name,
      arguments: calls[index]?.arguments ?? "",
      result: content,
      isError: String(isError),
    }),
  );
  return texts.join("\n");
}
