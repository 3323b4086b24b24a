import * as z from "zod";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import { checkOptions, optionsSchema, callbackOption } from "../../options/check-options.ts";
import type { ApproveHostCall, HostCallContext } from "./host-call.ts";
import type { HostFunction } from "./host-function.ts";
import { isHostFunctionName, makeHostFunction } from "./make-host-function.ts";
import { isStandardSchema, type JsonSchema, type SchemaResult, type StandardSchema } from "./standard-schema.ts";

/** The parts of a Vercel AI SDK tool that Fenced uses. */
export interface AiSdkTool {
  readonly description?: string | undefined;
  /** A library's schema, the return value of `jsonSchema()`, or a function that returns one of them. */
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  // The SDK's own type depends on the tool.
  readonly execute?: ((input: never, options: never) => unknown) | undefined;
  readonly needsApproval?: unknown;
}

const fromArguments = optionsSchema({
  tools: z.custom<Readonly<Record<string, AiSdkTool>>>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object of tools by name: { get_weather: tool({ ... }) }",
  ),
  approve: callbackOption<ApproveHostCall>().exactOptional(),
  callOptions: z.custom<object>((value) => typeof value === "object", "must be an object").exactOptional(),
});

/** How tools become host functions. */
export interface HostFunctionsFromOptions {
  /** Decides about each call of each tool, like `approve` of `hostFunction`. Default: none. */
  readonly approve?: ApproveHostCall | undefined;
  /**
   * More options for the tools' `execute` and `needsApproval`, besides the call's id and signal: the messages and the
   * context of the request that the code belongs to. Default: no messages.
   */
  readonly callOptions?: object | undefined;
}

/**
 * Turns the tools of a Vercel AI SDK `ToolSet` (what you pass to `generateText`, or what an MCP client's `tools()`
 * returns) into host functions. Their names become identifiers: `get-weather` is `get_weather`. A tool that streams
 * results returns its last one; an MCP tool returns its structured content, or its text. Parts of a
 * JSON schema that cannot be checked here, such as an invalid pattern, are left to the tool. `needsApproval` is evaluated before each call, and `approve` or the
 * executor's `approveHostCall` decides: running code cannot wait for a chat's next request.
 *
 * @throws InvalidInputError if a tool cannot run here (it has no `execute`), or two would have the same name.
 *
 * @example
 * const executor = new DockerCommandLineCodeExecutor({ functions: hostFunctionsFrom(await mcpClient.tools()) });
 */
export function hostFunctionsFrom(
  tools: Readonly<Record<string, AiSdkTool>>,
  options: HostFunctionsFromOptions = {},
): HostFunction[] {
  const checked = checkOptions(fromArguments, { ...options, tools }, "hostFunctionsFrom");
  const entries = Object.entries(checked.tools);
  const names = new Map<string, string>();
  return entries.map(([toolName, tool]) => {
    const name = toFunctionName(toolName);
    const before = names.get(name);
    if (before !== undefined) {
      throw new InvalidInputError(`The tools ${before} and ${toolName} would both become the function ${name}`, {
        remedy: "Rename one of them.",
      });
    }
    names.set(name, toolName);
    return fromTool({ name, toolName, tool }, checked);
  });
}

function fromTool(
  { name, toolName, tool }: { readonly name: string; readonly toolName: string; readonly tool: AiSdkTool },
  { approve, callOptions }: HostFunctionsFromOptions,
): HostFunction {
  const { execute, description = "", needsApproval } = tool;
  if (typeof execute !== "function") {
    throw new InvalidInputError(`The tool ${toolName} has no \`execute\`, so it does not run in this program`, {
      remedy: "Leave it out of the tools that code may call.",
    });
  }
  const output = tool.outputSchema === undefined ? undefined : schemaOf(tool.outputSchema, toolName);
  const definition = {
    name,
    description,
    input: schemaOf(tool.inputSchema ?? { type: "object" }, toolName),
    ...(output === undefined ? {} : { output }),
    needsApproval:
      typeof needsApproval === "function"
        ? async (input: unknown, { callId }: HostCallContext): Promise<boolean> => {
            const options = { messages: [], ...callOptions, toolCallId: callId };
            return (await Reflect.apply(needsApproval, tool, [input, options])) !== false;
          }
        : needsApproval !== undefined && needsApproval !== false,
    ...(approve && { approve }),
    execute: async (input: unknown, { callId, signal }: HostCallContext): Promise<unknown> => {
      const options = { messages: [], ...callOptions, toolCallId: callId, abortSignal: signal };
      return plainResult(await lastOf(Reflect.apply(execute, tool, [input, options])));
    },
  };
  return makeHostFunction(definition, "lenient");
}

/** Converts a tool's name to an identifier of Python and JavaScript: `get-weather` becomes `get_weather`. */
export function toFunctionName(toolName: string): string {
  const name = toolName
    .normalize("NFKC")
    .replaceAll(/(?:[^\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}_]|\p{Default_Ignorable_Code_Point}|[\u{10000}-\u{10ffff}])+/gu, "_")
    .replace(/^(?=[\p{Nd}\p{Mn}\p{Mc}])/u, "_")
    .replace(/^__+/, "_");
  return isHostFunctionName(name) ? name : `${name}_`;
}

/**
 * Returns the schema passed to the SDK: a library's, one made by `jsonSchema()`, or a function that makes it on demand.
 */
function schemaOf(given: unknown, toolName: string): StandardSchema | JsonSchema {
  if (isStandardSchema(given)) return given;
  const made: unknown = typeof given === "function" ? Reflect.apply(given, undefined, []) : given;
  if (isStandardSchema(made)) return made;
  const inner: unknown = isRecord(made) && "jsonSchema" in made ? made["jsonSchema"] : made;
  if (!isRecord(inner) || typeof inner["then"] === "function") {
    throw new InvalidInputError(`The schema of the tool ${toolName} is a promise, or not a JSON Schema`, {
      remedy: "Await it first, or give the tool a zod schema or `jsonSchema({ ... })`.",
    });
  }
  const validate: unknown = isRecord(made) ? made["validate"] : undefined;
  if (typeof validate !== "function") return inner;
  return withValidator(inner, (value): unknown => Reflect.apply(validate, made, [value]));
}

/** Wraps the validator of an SDK schema, which returns `{ success, value, error }`. */
function withValidator(json: JsonSchema, validate: (value: unknown) => unknown): StandardSchema {
  const tell = (): JsonSchema => json;
  const standard = {
    version: 1 as const,
    vendor: "ai",
    jsonSchema: { input: tell, output: tell },
    validate: async (value: unknown): Promise<SchemaResult<unknown>> => {
      const result: unknown = await validate(value);
      if (isRecord(result) && result["success"] === true) return { value: result["value"] };
      const error: unknown = isRecord(result) ? result["error"] : undefined;
      return { issues: [{ message: error instanceof Error ? error.message : "not valid" }] };
    },
  };
  return { "~standard": standard };
}

/** The last result of a tool that yields several: each replaces the one before. */
async function lastOf(result: unknown): Promise<unknown> {
  const settled: unknown = await result;
  if (!isAsyncIterable(settled)) return settled;
  let last: unknown;
  for await (const item of settled) last = item;
  return last;
}

/** Extracts what a program can use from an MCP result, which is made for models. Returns other results unchanged. */
function plainResult(result: unknown): unknown {
  if (!isRecord(result) || !Array.isArray(result["content"])) return result;
  const parts: readonly unknown[] = result["content"];
  const texts = parts.flatMap((part) => (isText(part) ? [part.text] : []));
  if (result["isError"] === true) throw new Error(texts.join("\n") || "The tool failed without a reason");
  if (result["structuredContent"] !== undefined) return result["structuredContent"];
  return texts.length === parts.length && texts.length > 0 ? texts.join("\n") : result;
}

function isText(part: unknown): part is { readonly text: string } {
  return isRecord(part) && part["type"] === "text" && typeof part["text"] === "string";
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
