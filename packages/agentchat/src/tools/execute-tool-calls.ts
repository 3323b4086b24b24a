import { type JsonObject, parseJson, shortenMiddle, type ToolCall, type ToolResult } from "@fenced/core";
import * as z from "zod";
import { abortable } from "../common/abortable.ts";
import { emitting, type Emit } from "../common/emitting.ts";
import { jsonObjectSchema } from "../common/json.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { watchTool } from "../telemetry/watch-tool.ts";
import { isZodType, type Tool } from "./tool.ts";

// Longer than an executor needs to kill what it runs.
const graceMs = 15_000;

/** Options of `executeToolCalls`. */
export interface ToolCallOptions {
  readonly tools: readonly Tool[];
  /** Maximum characters of a result; a longer one keeps its head and tail. */
  readonly maxResultCharacters: number;
  readonly signal: AbortSignal | undefined;
  /** The agent that makes the calls, for telemetry. */
  readonly agentName?: string | undefined;
}

/**
 * Runs tool calls in parallel and yields messages and events of the agents behind them. An error in a call becomes its
 * result, so that the model can correct itself; only an abort rejects.
 */
export async function* executeToolCalls(
  calls: readonly ToolCall[],
  options: ToolCallOptions,
): AsyncGenerator<AgentMessage, ToolResult[], void> {
  const { signal } = options;
  signal?.throwIfAborted();
  return yield* emitting<AgentMessage, ToolResult[]>((emit) => {
    const results = Promise.all(calls.map((call) => executeToolCall(call, options, emit)));
    return abortable(results, { signal, graceMs });
  });
}

async function executeToolCall(
  call: ToolCall,
  { tools, maxResultCharacters, signal, agentName }: ToolCallOptions,
  emit: Emit<AgentMessage>,
): Promise<ToolResult> {
  const { id: callId, name } = call;
  try {
    const found = tools.find((candidate) => candidate.name === name);
    if (found === undefined) throw new Error(unknownToolMessage(name, tools));
    const content = await watchTool({ call, tool: found, agentName }, async () =>
      outputToText(await execute(found, parseArguments(call, found), { signal, emit })),
    );
    return { callId, name, content: shortenMiddle(content, maxResultCharacters), isError: false };
  } catch (error) {
    return { callId, name, content: shortenMiddle(messageOf(error), maxResultCharacters), isError: true };
  }
}

async function execute(
  tool: Tool,
  args: JsonObject,
  { signal, emit }: SignalOptions & { readonly emit: Emit<AgentMessage> },
): Promise<unknown> {
  if (tool.executeStream === undefined) return tool.execute(args, { signal });
  const items = tool.executeStream(args, { signal });
  try {
    let step = await items.next();
    for (; step.done !== true; step = await items.next()) await emit(step.value);
    return step.value;
  } finally {
    await items.return(undefined);
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
    parsed = parseJson(text, { maxDepth: Infinity });
  } catch (error) {
    throw new Error(`The arguments are not valid JSON: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const checked = jsonObjectSchema.safeParse(parsed);
  if (!checked.success) throw new Error("The arguments must be a JSON object.");
  return checked.data;
}

/** @throws an error that the tool returned instead of throwing it. */
function outputToText(output: unknown): string {
  if (typeof output === "string") return output;
  if (output instanceof Error) throw output;
  const text: unknown = JSON.stringify(output, errorAsText);
  return typeof text === "string" ? text : "";
}

/** An error has no fields that JSON shows. */
function errorAsText(_: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value;
}

/** The message of an error. Anything can be thrown, even values that cannot be converted to text. */
function messageOf(error: unknown): string {
  try {
    const said: unknown = error instanceof Error ? error.message : error;
    return String(said);
  } catch {
    return "It threw a value that cannot be shown as text.";
  }
}
