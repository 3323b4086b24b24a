import { FencedError } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { httpStatus } from "@fenced/core/web";
import { preflight, readableBy } from "./cross-origin.ts";
import { mcpHandlerOptions, type McpHandlerOptions } from "./mcp-handler-options.ts";
import { McpSessions } from "./mcp-sessions.ts";
import { refuse } from "./refuse.ts";
import { reportError } from "./report-error.ts";
import { RequestGuard } from "./request-guard.ts";

/** Handles requests of MCP over streamable HTTP. */
export interface McpHandler extends AsyncDisposable {
  /** Answers one request; never rejects. Mount it at one path, for POST, GET, DELETE and OPTIONS. */
  (request: Request): Promise<Response>;
  /** Ends all sessions, and resolves when their executors have stopped. Refuses new sessions with 503. Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves MCP to several users in your own server: a function from a standard `Request` to a `Response`, for Hono,
 * Next.js, Deno, Bun and others. Each session has its own executor and answers only the user that started it; for
 * others it does not exist (404). The executor stops when the client ends the session (its DELETE is answered after
 * that), when the session has been idle for `sessionIdleMs`, when a new client needs its place, or with `close()`.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const handler = createMcpHandler({
 *   authenticate: (request) => users.get(request.headers.get("authorization") ?? ""),
 *   createExecutor: ({ user }) => new DockerCommandLineCodeExecutor({ image: user.image }),
 *   allowedHosts: ["tools.example"],
 * });
 * app.all("/mcp", (context) => handler(context.req.raw));
 */
export function createMcpHandler<User>(options: McpHandlerOptions<User>): McpHandler {
  return handlerOf(checkOptions(mcpHandlerOptions<User>(), options, "createMcpHandler"));
}

/** Does the same with validated options. */
export function handlerOf<User>(options: McpHandlerOptions<User>): McpHandler {
  const guard = new RequestGuard(options);
  const sessions = new McpSessions(options);
  const answer = async (request: Request): Promise<Response> => {
    if (request.method === "OPTIONS") return preflight(request);
    const user = await options.authenticate(request);
    return user === undefined || user === null ? refuse(nobody) : sessions.handle(request, user);
  };
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= sessions.close());
  const answerOrReport = async (request: Request): Promise<Response> => {
    try {
      return await answer(request);
    } catch (error) {
      reportError(error, options.onError);
      const message = FencedError.isInstance(error) ? error.message : "Internal error; see the server's log.";
      return refuse({ status: statusOf(error), code: -32_603, message });
    }
  };
  const handle = async (request: Request): Promise<Response> => {
    const refusal = guard.check(request);
    if (refusal !== undefined) return refuse(refusal);
    const origin = request.headers.get("origin");
    const response = await answerOrReport(request);
    return origin === null ? response : readableBy(origin, response);
  };
  return Object.assign(handle, { close, [Symbol.asyncDispose]: close });
}
const nobody = {
  status: 401,
  message: "Missing or invalid token; send a valid one in the header Authorization: Bearer <token>.",
};

/** Distinguishes temporary failures from permanent ones. */
function statusOf(error: unknown): number {
  const status = httpStatus(error);
  return status === 429 || status === 503 ? status : 500;
}
