import type { IncomingMessage, ServerResponse } from "node:http";
import type { McpHttpServerOptions } from "./mcp-http-server-options.ts";
import { McpSession } from "./mcp-session.ts";
import { reportError } from "./report-error.ts";

const unknownSession = { status: 404, code: -32_001, message: "There is no such session. Begin one with initialize." };
const tooManySessions = {
  status: 503,
  code: -32_000,
  message: "The server has as many sessions as it may have. End one, or come back later.",
};

/** All sessions of a server: found by their id, bounded in number, each ended once and for all. */
export class McpSessions {
  readonly #options: McpHttpServerOptions;
  readonly #maxSessions: number;
  readonly #open = new Map<string, McpSession>();
  /** All whose executors are not stopped yet, open or not. */
  readonly #sessions = new Set<McpSession>();
  readonly #making = new Set<Promise<McpSession>>();
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: McpHttpServerOptions) {
    this.#options = options;
    this.#maxSessions = options.maxSessions ?? 8;
  }

  /** Hands a request to its session; one without a session begins a new one. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    if (id === undefined) return this.#begin(request, response);
    const session = typeof id === "string" ? this.#open.get(id) : undefined;
    if (session === undefined) refuse(response, unknownSession);
    else await session.handle(request, response);
  }

  /** Ends all sessions, and waits until their executors are stopped. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#making);
    await Promise.all([...this.#sessions].map((session) => session.end()));
    await Promise.all(this.#ending);
  }

  async #begin(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const count = this.#sessions.size + this.#making.size;
    if (this.#closed || count >= this.#maxSessions) {
      refuse(response, tooManySessions);
      return;
    }
    const making = this.#make();
    this.#making.add(making);
    const session = await making.finally(() => this.#making.delete(making));
    try {
      // Of a client that left meanwhile the response is closed already, and will not say so again.
      if (!response.destroyed) await session.handle(request, response);
    } finally {
      // What was no initialize request has begun no session.
      if (session.id === undefined) await session.end();
    }
  }

  async #make(): Promise<McpSession> {
    const { sessionIdleMs = 1_800_000, createExecutor, ...options } = this.#options;
    const executor = await createExecutor();
    try {
      const session: McpSession = new McpSession(executor, {
        ...options,
        sessionIdleMs,
        onOpen: (id) => void this.#open.set(id, session),
        onEnd: () => this.#end(session),
      });
      await session.connect();
      this.#sessions.add(session);
      return session;
    } catch (error) {
      await executor.stop().catch((failure: unknown) => reportError(failure, this.#options.onError));
      throw error;
    }
  }

  #end(session: McpSession): void {
    if (session.id !== undefined) this.#open.delete(session.id);
    const ending = session
      .stopExecutor()
      .catch((error: unknown) => reportError(error, this.#options.onError))
      .finally(() => {
        this.#sessions.delete(session);
        this.#ending.delete(ending);
      });
    this.#ending.add(ending);
  }
}

/** Answers with an error of JSON-RPC. */
export function refuse(
  response: ServerResponse,
  { status, code = -32_000, message }: { readonly status: number; readonly code?: number; readonly message: string },
): void {
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
}
