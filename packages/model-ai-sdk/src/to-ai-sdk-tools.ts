import type { ToolSchema } from "@fenced/core";
import { jsonSchema, tool, type ToolCallRepairFunction, type ToolSet } from "ai";

/**
 * Converts tools to the AI SDK's format. The SDK only describes them and never runs them.
 *
 * The AI SDK parses a call's arguments, but callers expect them as the model wrote them (numbers beyond 2^53, duplicate
 * keys). So the tools accept only a string, and `keepArgumentsText`, the SDK's hook for calls that a tool rejects,
 * passes the arguments' own text.
 */
export function toAISDKTools(tools: readonly ToolSchema[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, parameters }) => [
      name,
      tool({ description, inputSchema: jsonSchema<string>(parameters, { validate: acceptString }) }),
    ]),
  );
}

/** See `toAISDKTools`. */
export const keepArgumentsText: ToolCallRepairFunction<ToolSet> = ({ toolCall }) =>
  Promise.resolve({ ...toolCall, input: JSON.stringify(toolCall.input.trim() === "" ? "{}" : toolCall.input) });

function acceptString(value: unknown): { success: true; value: string } | { success: false; error: Error } {
  if (typeof value === "string") return { success: true, value };
  return { success: false, error: new TypeError("not text yet") };
}
