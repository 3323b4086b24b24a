import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { CodeExecutor } from "@fenced/core";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpServer } from "../create-mcp-server.ts";
import type { McpServerOptions } from "../mcp-server-options.ts";

/** How a session ends by itself, and whom it tells. */
export interface McpSessionOptions extends McpServerOptions {
  readonly sessionIdleMs: number;
  /** The client has begun the session. */
  readonly onOpen: (id: string) => void;
  /** The session has ended: its executor is still there. */
  readonly onEnd: () => void;
}

/** One client's session: an MCP server over an executor of its own. */
export class McpSession {
  readonly #executor: CodeExecutor;
  readonly #transport: StreamableHTTPServerTransport;
  readonly #server: ReturnType<typeof createMcpServer>;
  readonly #idleMs: number;
  #requests = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(executor: CodeExecutor, { sessionIdleMs, onOpen, onEnd, ...options }: McpSessionOptions) {
    this.#executor = executor;
    this.#idleMs = sessionIdleMs;
    this.#server = createMcpServer(executor, options);
    this.#transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: onOpen,
    });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way to hear of it.
    this.#server.server.onclose = () => {
      if (this.#ended) return;
      this.#ended = true;
      clearTimeout(this.#timer);
      onEnd();
    };
  }

  /** Undefined until the client has begun the session. */
  get id(): string | undefined {
    return this.#transport.sessionId;
  }

  async connect(): Promise<void> {
    await this.#server.connect(this.#transport);
  }

  /** Answers a request; while it is open, the session is in use. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    clearTimeout(this.#timer);
    this.#requests += 1;
    response.once("close", () => {
      this.#requests -= 1;
      if (this.#requests === 0 && !this.#ended) this.#timer = setTimeout(() => void this.end(), this.#idleMs);
    });
    await this.#transport.handleRequest(request, response);
  }

  /** Ends the session; `onEnd` is called. */
  async end(): Promise<void> {
    await this.#server.close();
  }

  /** Ends what runs, and removes what the executor made. */
  async stopExecutor(): Promise<void> {
    await this.#executor.stop();
  }
}
