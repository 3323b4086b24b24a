import { InvalidInputError, type JsonObject, showHidden } from "@fenced/core";
import { afterMs, joinSignals, longestTimer, untilAborted } from "@fenced/core/abort";
import {
  checkOptions,
  objectOption,
  optionsSchema,
  signalOption,
  timeLimitOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { Tool } from "./tool.ts";

/** What `mcpTools` uses of a client of the official MCP SDK, `Client` of `@modelcontextprotocol/sdk`, which you have connected. */
export interface McpClient {
  listTools(params?: { cursor?: string }, options?: McpRequestOptions): Promise<unknown>;
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    resultSchema?: undefined,
    options?: McpRequestOptions,
  ): Promise<unknown>;
  close(): Promise<void>;
}

/** Options of a request of the MCP SDK. */
export interface McpRequestOptions {
  readonly signal?: AbortSignal;
  readonly timeout?: number;
}

/** Options of `mcpTools`; all are optional. */
export interface McpToolsOptions extends SignalOptions {
  /** Names of tools to use. Default: all that the server offers. */
  readonly names?: readonly string[] | undefined;
  /** Added in front of the names for the model, when several servers have tools of the same name. Default: nothing. */
  readonly prefix?: string | undefined;
  /** Time limit of each request in milliseconds; `Infinity` for none. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** The tools of an MCP server. */
export interface McpTools extends AsyncDisposable {
  /** For the `tools` of an `AssistantAgent`. */
  readonly tools: readonly Tool[];
  /** Closes the client, and with it a server that the client started. Calls then fail. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Maximum number of tools of a server, which may list them endlessly. */
const mostTools = 1000;

const argumentsSchema = optionsSchema({
  client: objectOption<McpClient>(["listTools", "callTool", "close"], "a connected client of the MCP SDK"),
  names: z.array(z.string()).exactOptional(),
  prefix: z
    .string()
    .regex(/^[\w-]*$/, "must be letters, digits, _ or -")
    .exactOptional(),
  timeoutMs: timeLimitOption.exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<McpToolsOptions & { readonly client: McpClient }>);

const page = z.object({
  tools: z.array(z.object({ name: z.string(), description: z.string().optional(), inputSchema: jsonObjectSchema })),
  nextCursor: z.string().optional(),
});
type ListedTool = z.output<typeof page>["tools"][number];

const callResult = z.object({
  content: z.array(z.looseObject({ type: z.string() })).default([]),
  structuredContent: jsonObjectSchema.optional(),
  isError: z.boolean().optional(),
});

/**
 * Turns the tools of an MCP server into tools of an agent. Lists them once; names that models do not accept are changed. A call's
 * abort ends its request, and a call that the server says has failed is an error for the model. The model gets text; of other
 * content, such as images, only its type.
 *
 * @param client - connected. Dispose of the result to close it, after the agents that use the tools.
 * @throws InvalidInputError if an option is unknown or wrong, the server lacks one of `names`, or it lists no valid tools.
 * @throws the client's error if the server does not answer.
 *
 * @example
 * const client = new Client({ name: "app", version: "1.0.0" });
 * await client.connect(new StdioClientTransport({ command: "npx", args: ["-y", "a-server"] }));
 * await using server = await mcpTools(client);
 * const agent = new AssistantAgent({ name: "helper", modelClient, tools: server.tools });
 */
export async function mcpTools(client: McpClient, options: McpToolsOptions = {}): Promise<McpTools> {
  const checked = checkOptions(argumentsSchema, { ...options, client }, "mcpTools");
  const { names, prefix = "", timeoutMs = 60_000, signal } = checked;
  const listed = await listTools(checked.client, { signal, timeoutMs });
  const missing = names?.find((name) => !listed.some((tool) => tool.name === name));
  if (missing !== undefined) {
    throw new InvalidInputError(`The MCP server has no tool ${JSON.stringify(missing)}`, {
      remedy: `It has: ${listed.map(({ name }) => JSON.stringify(name)).join(", ")}.`,
    });
  }
  const wanted = listed.filter(({ name }) => names?.includes(name) ?? true);
  const taken = new Set<string>();
  const tools = wanted.map((tool) =>
    toTool(checked.client, tool, { name: freeName(`${prefix}${tool.name}`, taken), timeoutMs }),
  );
  return { tools, [Symbol.asyncDispose]: () => checked.client.close() };
}

interface RequestLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

async function listTools(client: McpClient, limits: RequestLimits): Promise<ListedTool[]> {
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const answer = page.safeParse(await inTime(limits, (options) => client.listTools(params, options)));
    if (!answer.success) {
      throw new InvalidInputError(`The MCP server lists no valid tools: ${z.prettifyError(answer.error)}`, {
        remedy: "Check that the client is one of the official SDK, and connected.",
      });
    }
    if (answer.data.tools.length === 0) break;
    tools.push(...answer.data.tools);
    cursor = answer.data.nextCursor;
  } while (cursor !== undefined && tools.length < mostTools);
  return tools.slice(0, mostTools);
}

function toTool(
  client: McpClient,
  { name: serverName, description = "", inputSchema }: ListedTool,
  { name, timeoutMs }: { readonly name: string; readonly timeoutMs: number },
): Tool {
  return {
    name,
    description: showHidden(description),
    parameters: showHiddenWords(inputSchema),
    execute: async (args, { signal }) =>
      resultOf(
        await inTime({ signal, timeoutMs }, (options) =>
          client.callTool({ name: serverName, arguments: args }, undefined, options),
        ),
      ),
  };
}

/** Shows what the words of a schema hide. Names and values stay as they are, because the server gets them back. */
function showHiddenWords(schema: JsonObject): JsonObject {
  const shown: unknown = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    typeof value === "string" && wordsOfSchemas.has(key) ? showHidden(value) : value,
  );
  return jsonObjectSchema.parse(shown);
}

const wordsOfSchemas: ReadonlySet<string> = new Set(["title", "description", "$comment"]);

/** Does not rely on the client's own limits: an older or newer one may take its options elsewhere. */
async function inTime<T>(
  { signal, timeoutMs }: RequestLimits,
  request: (options: McpRequestOptions) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const cancel = afterMs(timeoutMs, () =>
    late.abort(new Error(`The MCP server did not answer within ${timeoutMs} ms`)),
  );
  const ending = joinSignals(signal, late.signal);
  try {
    ending.throwIfAborted();
    return await untilAborted(request({ signal: ending, timeout: longestTimer }), ending);
  } finally {
    cancel();
  }
}

/** @throws Error if the call has failed, by the server's own account. */
function resultOf(answer: unknown): string | JsonObject {
  const { content, structuredContent, isError = false } = callResult.parse(answer);
  const text = content.map(textOf).join("\n");
  if (isError) throw new Error(text === "" ? "The tool failed and said nothing." : text);
  return text === "" && structuredContent ? structuredContent : text;
}

function textOf(part: Readonly<Record<string, unknown>>): string {
  const { type, text, resource, uri } = part;
  if (typeof text === "string") return text;
  const inner: unknown = typeof resource === "object" && resource !== null ? Reflect.get(resource, "text") : undefined;
  if (typeof inner === "string") return inner;
  return `[${String(type)}${typeof uri === "string" ? `: ${uri}` : ""}]`;
}

const mostNameCharacters = 64;

/** A name that models accept, and no other tool of the server has. */
function freeName(name: string, taken: Set<string>): string {
  const plain = name.replaceAll(/[^\w-]/g, "_").slice(0, mostNameCharacters) || "tool";
  let free = plain;
  for (let count = 2; taken.has(free); count += 1) {
    const suffix = `_${count}`;
    free = `${plain.slice(0, mostNameCharacters - suffix.length)}${suffix}`;
  }
  taken.add(free);
  return free;
}
