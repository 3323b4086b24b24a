import type { ToolSchema } from "@fenced/core";
import { jsonSchema, tool, type ToolCallRepairFunction, type ToolSet } from "ai";

/**
 * The tools as the AI SDK wants them; they are only described, never run by it.
 *
 * The AI SDK hands out a call's arguments parsed, but callers are promised them as the model wrote them (numbers beyond
 * 2^53, duplicate keys). So the tools accept nothing but a string, and `keepArgumentsText`, the SDK's hook for calls
 * that a tool does not accept, turns the arguments into one: their own text.
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
