import type { CodeExecutor, SubmittedRun } from "@fenced/core";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { ExecutorServer } from "../executor-server.ts";
import { defaultHeartbeatMs, type McpServerOptions } from "../mcp-server-options.ts";
import { refuse } from "./refuse.ts";
import { watchResponse } from "./watch-response.ts";

/** Maximum number of open requests and streams of a session. */
const maxOpenRequests = 64;
const tooManyRequests = { status: 429, message: "The session has too many open requests; wait for some to finish." };

/** Options of a session: its limits, and callbacks for its start and end. */
export interface McpSessionOptions<User> extends McpServerOptions {
  readonly sessionId: string;
  readonly user: User;
  readonly sessionIdleMs: number;
  /** Called when the client has started the session. */
  readonly onOpen: (id: string) => void;
  /** Called when the session has ended; its executor may still be running. */
  readonly onEnd: () => void;
}

/** One client's session: an MCP server with its own executor. */
export class McpSession<User> {
  /** The only user that the session answers. */
  readonly user: User;
  readonly #executor: CodeExecutor;
  readonly #transport: WebStandardStreamableHTTPServerTransport;
  readonly #server: ExecutorServer;
  readonly #idleMs: number;
  readonly #heartbeatMs: number;
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
    this.#heartbeatMs = options.heartbeatMs ?? defaultHeartbeatMs;
    this.#server = new ExecutorServer(executor, options);
    this.#transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      onsessioninitialized: onOpen,
      // The client's DELETE is answered when nothing of the session is left; onEnd stops the executor again and reports failures.
      onsessionclosed: () => this.stopExecutor().catch(() => {}),
    });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK offers no other way to observe it.
    this.#server.server.onclose = () => {
      if (this.#ended) return;
      this.#ended = true;
      clearTimeout(this.#timer);
      onEnd();
    };
  }

  /** `undefined` until the client has started the session. */
  get id(): string | undefined {
    return this.#transport.sessionId;
  }

  /** True once the session has ended; its executor may still be stopping. */
  get ended(): boolean {
    return this.#ended;
  }

  async connect(): Promise<void> {
    await this.#server.connect(this.#transport);
  }

  /**
   * When the session was last in use, on the clock of `performance`; `undefined` while a request or stream is open, or code
   * runs.
   */
  get idleSince(): number | undefined {
    return this.#requests === 0 && !this.#running ? this.#idleSince : undefined;
  }

  /** Code that goes on after its request was answered. */
  get #running(): SubmittedRun | undefined {
    return this.#executor.runs().find(({ state }) => state === "running");
  }

  /**
   * Answers a request; while it is open, the session is in use.
   *
   * @param body - the parsed body; `undefined` for a request without one.
   */
  async handle(request: Request, body: unknown): Promise<Response> {
    if (this.#requests >= maxOpenRequests) return refuse(tooManyRequests);
    clearTimeout(this.#timer);
    this.#requests += 1;
    try {
      const response = await this.#transport.handleRequest(request, { parsedBody: body });
      return watchResponse(response, request, {
        onOver: () => this.#requestOver(),
        heartbeatMs: this.#heartbeatMs,
      });
    } catch (error) {
      this.#requestOver();
      throw error;
    }
  }

  #requestOver(): void {
    this.#requests -= 1;
    if (this.#requests > 0 || this.#ended) return;
    this.#watchIdle();
  }

  #watchIdle(): void {
    clearTimeout(this.#timer);
    this.#idleSince = performance.now();
    const running = this.#running;
    if (!running) {
      this.#timer = setTimeout(() => void this.end(), this.#idleMs);
      return;
    }
    // The idle time begins when the code has ended, so that the client can read its result.
    const again = (): void => {
      if (this.#requests === 0 && !this.#ended) this.#watchIdle();
    };
    running.result().then(again, again);
  }

  /** Ends the session, which calls `onEnd`. */
  async end(): Promise<void> {
    await this.#server.close();
  }

  /** Ends running code and the connections to other servers, and removes what the executor created. */
  async stopExecutor(): Promise<void> {
    await Promise.all([this.#server.disconnect(), this.#executor.stop()]);
  }
}
