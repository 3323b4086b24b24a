import type { CodeExecutor } from "@fenced/core";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { ExecutorServer } from "../executor-server.ts";
import type { McpServerOptions } from "../mcp-server-options.ts";
import { refuse } from "./refuse.ts";
import { watchResponse } from "./watch-response.ts";

/** Requests and streams that a session may have open at a time. */
const maxOpenRequests = 64;
const tooManyRequests = { status: 429, message: "The session has too many open requests; wait for some to finish." };

/** What a session needs: its limits, and what is told of its beginning and end. */
export interface McpSessionOptions<User> extends McpServerOptions {
  readonly sessionId: string;
  readonly user: User;
  readonly sessionIdleMs: number;
  /** The client has begun the session. */
  readonly onOpen: (id: string) => void;
  /** The session has ended: its executor is still there. */
  readonly onEnd: () => void;
}

/** One client's session: an MCP server over an executor of its own. */
export class McpSession<User> {
  /** The only user that it answers. */
  readonly user: User;
  readonly #executor: CodeExecutor;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  readonly #server: ExecutorServer;
  readonly #idleMs: number;
  #requests = 0;
  #idleSince = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(
    executor: CodeExecutor,
    { sessionId, user, sessionIdleMs, onOpen, onEnd, ...options }: McpSessionOptions<User>,
  ) {
    this.user = user;
    this.#executor = executor;
    this.#idleMs = sessionIdleMs;
    this.#server = new ExecutorServer(executor, options);
    this.#transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      onsessioninitialized: onOpen,
      // The client's DELETE is answered when nothing of the session is left; what fails is reported by onEnd, which stops again.
      onsessionclosed: () => this.stopExecutor().catch(() => {}),
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

  /** Its executor may still be stopping. */
  get ended(): boolean {
    return this.#ended;
  }

  async connect(): Promise<void> {
    await this.#server.connect(this.#transport);
  }

  /** When the session was last in use, on the clock of `performance`; `undefined` while a request or stream is open. */
  get idleSince(): number | undefined {
    return this.#requests === 0 ? this.#idleSince : undefined;
  }

  /**
   * Answers a request; while it is open, the session is in use.
   *
   * @param body - the parsed body; `undefined` for a request without.
   */
  async handle(request: Request, body: unknown): Promise<Response> {
    if (this.#requests >= maxOpenRequests) return refuse(tooManyRequests);
    clearTimeout(this.#timer);
    this.#requests += 1;
    try {
      const response = await this.#transport.handleRequest(request, { parsedBody: body });
      return watchResponse(response, request, () => this.#requestOver());
    } catch (error) {
      this.#requestOver();
      throw error;
    }
  }

  #requestOver(): void {
    this.#requests -= 1;
    if (this.#requests > 0 || this.#ended) return;
    this.#idleSince = performance.now();
    this.#timer = setTimeout(() => void this.end(), this.#idleMs);
  }

  /** Ends the session; `onEnd` is called. */
  async end(): Promise<void> {
    await this.#server.close();
  }

  /** Ends what runs and the connections to other servers, and removes what the executor made. */
  async stopExecutor(): Promise<void> {
    await Promise.all([this.#server.disconnect(), this.#executor.stop()]);
  }
}
