import type { JsonObject, ToolCall, ToolResult } from "@fenced/core";
import * as z from "zod";
import { abortable } from "../common/abortable.ts";
import { isZodType, type Tool } from "./tool.ts";

// Longer than an executor needs to kill what it runs.
const graceMs = 15_000;

/**
 * Runs tool calls side by side. Everything that goes wrong with a call becomes its result, so that the model can
 * correct itself; only an abort rejects.
 */
export async function executeToolCalls(
  calls: readonly ToolCall[],
  { tools, signal }: { readonly tools: readonly Tool[]; readonly signal: AbortSignal | undefined },
): Promise<ToolResult[]> {
  signal?.throwIfAborted();
  const results = Promise.all(calls.map((call) => executeToolCall(call, tools, signal)));
  return abortable(results, { signal, graceMs });
}

async function executeToolCall(
  call: ToolCall,
  tools: readonly Tool[],
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const { id: callId, name } = call;
  try {
    const found = tools.find((candidate) => candidate.name === name);
    if (found === undefined) throw new Error(unknownToolMessage(name, tools));
    const output = await found.execute(parseArguments(call, found), { signal });
    return { callId, name, content: outputToText(output), isError: false };
  } catch (error) {
    return { callId, name, content: error instanceof Error ? error.message : String(error), isError: true };
  }
}

function unknownToolMessage(name: string, tools: readonly Tool[]): string {
  return `There is no tool "${name}". The tools are: ${tools.map((candidate) => candidate.name).join(", ")}.`;
}

function parseArguments(call: ToolCall, { parameters }: Tool): JsonObject {
  const args = parseJsonObject(call.arguments);
  if (!isZodType(parameters)) return args;
  const checked = parameters.safeParse(args);
  if (!checked.success) throw new Error(`The arguments are not valid: ${z.prettifyError(checked.error)}`);
  return args;
}

function parseJsonObject(text: string): JsonObject {
  // Some services send no text at all for a tool without arguments.
  if (text.trim() === "") return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Error(`The arguments are not valid JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const checked = z.record(z.string(), z.json()).safeParse(parsed);
  if (!checked.success) throw new Error("The arguments must be a JSON object.");
  return checked.data;
}

function outputToText(output: unknown): string {
  if (typeof output === "string") return output;
  const text: unknown = JSON.stringify(output);
  return typeof text === "string" ? text : "";
}
