import { setMaxListeners } from "node:events";
import { BackendUnavailableError } from "@fenced/core";
import { afterMs, joinSignals, longestTimer, untilAborted, within } from "@fenced/core/abort";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  type CallToolResult,
  CallToolResultSchema,
  ErrorCode,
  ListToolsResultSchema,
  McpError,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";
import { boundMessages } from "../bounded-stdio.ts";
import { packageVersion } from "../package-version.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { type McpTarget, targetName } from "./mcp-target.ts";

/** Maximum number of tools of a server, since a broken one may list them endlessly. */
const mostTools = 1000;

/** Milliseconds that a server over HTTP may take to end its session. */
const farewellMs = 2000;
const connectionClosed: number = ErrorCode.ConnectionClosed;
const requestTimeout: number = ErrorCode.RequestTimeout;

/** Options of `McpConnection.open`. */
export interface ConnectOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A connection to another MCP server, from its start to its end. */
export class McpConnection {
  /** The server's name for itself. */
  readonly name: string;
  readonly tools: readonly Tool[];
  readonly #client: Client;
  readonly #target: McpTarget;
  readonly #transport: ServerTransport;

  private constructor(
    client: Client,
    {
      target,
      transport,
      tools,
    }: { readonly target: McpTarget; readonly transport: ServerTransport; readonly tools: readonly Tool[] },
  ) {
    this.#client = client;
    this.#target = target;
    this.#transport = transport;
    this.name = client.getServerVersion()?.name ?? targetName(target);
    this.tools = tools;
  }

  /**
   * @throws BackendUnavailableError if it does not start, does not answer, or offers no tools; the signal's reason if
   * it is aborted.
   */
  static async open(target: McpTarget, { timeoutMs, signal }: ConnectOptions): Promise<McpConnection> {
    const client = new Client({ name: "fenced", version: packageVersion() });
    const transport = transportOf(target);
    const limits = { timeoutMs, signal };
    try {
      await inTime(limits, (options) => client.connect(transport, options));
      const tools = await inTime(limits, (options) => listTools(client, options));
      if (tools.length > 0) return new McpConnection(client, { target, transport, tools });
      throw unavailable(target, "offers no tools", "Remove it from the servers to connect to.");
    } catch (error) {
      // Not the client's close(), which waits for nothing if it is already closed.
      await transport.close().catch(() => {});
      signal.throwIfAborted();
      const { excess } = receivedOver(transport);
      if (excess) throw tooMuch(target, excess);
      throw BackendUnavailableError.isInstance(error) ? error : notConnected(target, error, timeoutMs);
    }
  }

  /** Calls a tool, for as long as `signal` is not aborted. */
  async call(name: string, args: unknown, signal: AbortSignal): Promise<CallToolResult> {
    const request = { method: "tools/call" as const, params: { name, arguments: asArguments(args) } };
    try {
      return await this.#client.request(request, CallToolResultSchema, { signal, timeout: longestTimer });
    } catch (error) {
      signal.throwIfAborted();
      if (this.#client.transport === undefined || isClosed(error)) {
        const { excess } = receivedOver(this.#transport);
        if (excess) throw tooMuch(this.#target, excess);
        throw unavailable(this.#target, "has ended", "Restart this MCP server to use its functions again.");
      }
      if (error instanceof McpError) throw error;
      throw unavailable(this.#target, `could not be called: ${messageOf(error)}`, "Try again later.", { cause: error });
    }
  }

  /**
   * Ends the connection, and the server if it was started for it: at once if the server ends with its input, otherwise
   * within seconds.
   */
  async close(): Promise<void> {
    // Otherwise, a server over HTTP keeps the session until its idle limit.
    const transport = this.#transport;
    if (transport instanceof StreamableHTTPClientTransport) {
      await within(farewellMs, transport.terminateSession()).catch(() => {});
    }
    await this.#client.close();
  }
}

/** A program whose end can be awaited even if the SDK's client has already closed it. */
class StartedServer extends StdioClientTransport {
  /** What it sends is more than can be read, if anything. */
  readonly messages = boundMessages(this);
  #closing: Promise<void> | undefined;

  override close(): Promise<void> {
    return (this.#closing ??= super.close());
  }
}

/** A server over HTTP only fails one request. */
function receivedOver(transport: ServerTransport): { readonly excess?: Error | undefined } {
  return transport instanceof StartedServer ? transport.messages : {};
}

function tooMuch(target: McpTarget, cause: Error): BackendUnavailableError {
  return unavailable(target, `was ended: ${cause.message}`, "Ask it for less at a time.", { cause });
}

type ServerTransport = StdioClientTransport | StreamableHTTPClientTransport;

function transportOf(target: McpTarget): ServerTransport {
  if ("url" in target) {
    const { url, headers } = target;
    const requestInit = headers && { headers: { ...headers } };
    return new StreamableHTTPClientTransport(new URL(url), {
      fetch: boundedFetch,
      ...(requestInit && { requestInit }),
    });
  }
  const { command, args = [], env, cwd } = target;
  return new StartedServer({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** Options of the SDK's requests. */
interface RequestOptions {
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/**
 * Limits the total time: the SDK's limit covers only one request of possibly many, and nothing that is sent after a
 * response.
 */
async function inTime<T>(
  { timeoutMs, signal }: ConnectOptions,
  action: (options: RequestOptions) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const cancel = afterMs(timeoutMs, () => late.abort(new McpError(requestTimeout, "Timed out")));
  const ending = joinSignals(signal, late.signal);
  // Each SDK request leaves a listener, and each page is one request.
  setMaxListeners(0, ending);
  try {
    return await untilAborted(action({ timeout: longestTimer, signal: ending }), ending);
  } finally {
    cancel();
  }
}

/** Reads all pages. Avoids the SDK's method, which compiles each output schema: an invalid one would make all tools fail. */
async function listTools(client: Client, options: RequestOptions): Promise<Tool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: Tool[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method: "tools/list", params }, ListToolsResultSchema, options);
    if (page.tools.length === 0) break;
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined && tools.length < mostTools);
  return tools.slice(0, mostTools);
}

function asArguments(args: unknown): Record<string, unknown> {
  return typeof args === "object" && args !== null ? { ...args } : {};
}

function isClosed(error: unknown): boolean {
  return error instanceof McpError && error.code === connectionClosed;
}

function notConnected(target: McpTarget, error: unknown, timeoutMs: number): BackendUnavailableError {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  const options = { cause: error };
  if (code === "ENOENT" || code === "EACCES") {
    return unavailable(target, `could not be started (${code})`, "Check the command and the PATH.", options);
  }
  if (error instanceof McpError && error.code === requestTimeout) {
    return unavailable(target, `did not answer within ${timeoutMs} ms`, "Check that it speaks MCP.", options);
  }
  if (isClosed(error)) {
    const remedy = "Check its messages on standard error, or run it in a terminal.";
    return unavailable(target, "ended before it answered", remedy, options);
  }
  return unavailable(
    target,
    `could not be reached: ${messageOf(error)}`,
    "Check its address, and that it speaks MCP.",
    options,
  );
}

/** The start of the message: over HTTP it may contain a whole page. */
function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 1000);
}

function unavailable(
  target: McpTarget,
  problem: string,
  remedy: string,
  options: { readonly cause?: unknown } = {},
): BackendUnavailableError {
  return new BackendUnavailableError(`The MCP server ${targetName(target)} ${problem}`, { remedy, ...options });
}
