import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  checkOptions,
  optionsSchema,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { isSameSecret, nodeListener } from "@fenced/core/runtime";
import * as z from "zod";
import { handlerOf, type McpHandler } from "./create-mcp-handler.ts";
import { sessionOptions, type McpSessionsOptions, type McpSessionStart } from "./mcp-handler-options.ts";
import { refuse } from "./refuse.ts";

/** Options of `startMcpHttpServer`. */
export interface McpHttpServerOptions extends McpSessionsOptions {
  /** Creates the executor of one session. The server owns it and stops it when the session ends. */
  readonly createExecutor: (start: Omit<McpSessionStart<unknown>, "user">) => CodeExecutor | Promise<CodeExecutor>;
  /** The port to listen on; 0 picks a free one. Default: 0. */
  readonly port?: number | undefined;
  /**
   * The address to listen on, which is also allowed as a host name. Default: `127.0.0.1`, which only programs on this
   * machine can reach.
   */
  readonly host?: string | undefined;
  /** The token that clients send as `Authorization: Bearer ...`: at least 16 visible ASCII characters. Default: a random one. */
  readonly token?: string | undefined;
}

/** Checks the options. */
const mcpHttpServerOptions: z.ZodType<McpHttpServerOptions> = optionsSchema({
  ...sessionOptions,
  createExecutor: callbackOption<McpHttpServerOptions["createExecutor"]>(),
  port: wholeNumberOption({ from: 0, to: 65_535 }).exactOptional(),
  host: z.string().min(1).exactOptional(),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{16,}$/, "must be at least 16 visible ASCII characters")
    .exactOptional(),
} satisfies OptionSchemas<McpHttpServerOptions>);

/** A running MCP server over HTTP. */
export interface McpHttpServer extends AsyncDisposable {
  /** The URL that clients connect to, including `/mcp`. */
  readonly url: string;
  /** The token that clients send as `Authorization: Bearer ...`. */
  readonly token: string;
  /** Ends all sessions, stops their executors, and closes the port. Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves MCP over streamable HTTP, at `/mcp`, to every client that has the token: `createMcpHandler` on its own port.
 * Each session has its own executor, which stops when the client ends the session, when the session has been idle for
 * `sessionIdleMs`, when a new client needs its place, or when the server closes.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 * @throws BackendUnavailableError if the server cannot listen on the port.
 */
export async function startMcpHttpServer(options: McpHttpServerOptions): Promise<McpHttpServer> {
  const checked = checkOptions(mcpHttpServerOptions, options, "startMcpHttpServer");
  const { host = "127.0.0.1", token = randomBytes(32).toString("base64url"), allowedHosts = [] } = checked;
  const handler = handlerOf({
    ...checked,
    allowedHosts: [inUrl(host), ...allowedHosts],
    authenticate: bearerOf(token),
  });
  const server = createServer(nodeListener((request) => atPath("/mcp", request, handler)));
  const port = await listen(server, checked.port ?? 0, host);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= closeServer(server, handler));
  return { url: `http://${inUrl(host)}:${port}/mcp`, token, close, [Symbol.asyncDispose]: close };
}

async function atPath(path: string, request: Request, handler: McpHandler): Promise<Response> {
  if (new URL(request.url).pathname === path) return handler(request);
  return refuse({ status: 404, message: `Not found; MCP is served at ${path}.` });
}

/** All clients with the token are one user. */
function bearerOf(token: string): (request: Request) => true | undefined {
  return ({ headers }) => {
    // The scheme's case does not matter.
    const given = /^bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
    return isSameSecret(token, given) ? true : undefined;
  };
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    throw new BackendUnavailableError(`The server cannot listen on ${host}:${port}: ${String(error)}`, {
      remedy: "Use an address of this machine and a free port; 0 picks one.",
      cause: error,
    });
  }
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

async function closeServer(server: Server, handler: McpHandler): Promise<void> {
  const closed = once(server, "close");
  server.close();
  try {
    await handler.close();
  } finally {
    server.closeAllConnections();
    await closed;
  }
}

function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
