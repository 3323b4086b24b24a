import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import { checkServerOptions } from "../mcp-server-options.ts";
import { checkHttpOptions, type McpHttpServerOptions } from "./mcp-http-server-options.ts";
import { McpSessions, refuse } from "./mcp-sessions.ts";
import { reportError } from "./report-error.ts";
import { RequestGuard } from "./request-guard.ts";

/** A running HTTP server of MCP. */
export interface McpHttpServer extends AsyncDisposable {
  /** Where clients connect to, `/mcp` included. */
  readonly url: string;
  /** What they send as `Authorization: Bearer ...`. */
  readonly token: string;
  /** Ends all sessions, stops their executors, and closes the port. Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves MCP over streamable HTTP, at `/mcp`. Each session of a client has an executor of its own, which ends with it: when the
 * client ends it, when nobody used it for a while, or when the server closes.
 *
 * @throws InvalidInputError if an option makes no sense.
 * @throws BackendUnavailableError if the port cannot be had.
 */
export async function startMcpHttpServer(options: McpHttpServerOptions): Promise<McpHttpServer> {
  checkHttpOptions(options);
  checkServerOptions(options);
  const { host = "127.0.0.1", token = randomBytes(32).toString("base64url"), allowedHosts = [] } = options;
  const guard = new RequestGuard({ names: [inUrl(host), ...allowedHosts], token });
  const sessions = new McpSessions(options);
  const server = createServer(
    (request, response) => void answer(request, response, { guard, sessions, onError: options.onError }),
  );
  const port = await listen(server, options.port ?? 0, host);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= closeServer(server, sessions));
  return { url: `http://${inUrl(host)}:${port}/mcp`, token, close, [Symbol.asyncDispose]: close };
}

interface Answering {
  readonly guard: RequestGuard;
  readonly sessions: McpSessions;
  readonly onError: ((error: unknown) => void) | undefined;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { guard, sessions, onError }: Answering,
): Promise<void> {
  const refusal = guard.check(request);
  if (refusal !== undefined) {
    refuse(response, refusal);
    return;
  }
  try {
    await sessions.handle(request, response);
  } catch (error) {
    reportError(error, onError);
    if (response.headersSent) response.destroy();
    else refuse(response, { status: 500, code: -32_603, message: messageOf(error) });
  }
}

function messageOf(error: unknown): string {
  return FencedError.isInstance(error) ? error.message : "The server failed to answer. Look at its log.";
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    throw new BackendUnavailableError(`${host}:${port} cannot be listened on: ${String(error)}`, {
      remedy: "Choose another port, 0 for any that is free, and an address of this machine.",
      cause: error,
    });
  }
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

async function closeServer(server: Server, sessions: McpSessions): Promise<void> {
  const closed = once(server, "close");
  server.close();
  try {
    await sessions.close();
  } finally {
    server.closeAllConnections();
    await closed;
  }
}

function inUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
