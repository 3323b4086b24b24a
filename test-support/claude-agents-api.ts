/**
 * The part of Claude's API for managed agents that an environment worker speaks to: work items, leases, events. The test says
 * which tools the model calls, and gets their results.
 *
 *     await using api = await ClaudeAgentsApi.start();
 *     api.enqueue("session");
 *     await api.call("session", "bash", { command: "ls" });
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** A request that the API has received. */
interface Received {
  readonly route: string;
  readonly bearer: string;
}

/** What a tool's result was. */
export interface ToolAnswer {
  readonly isError: boolean;
  readonly text: string;
}

interface SentResult {
  readonly type: string;
  readonly tool_use_id: string;
  readonly is_error: boolean;
  readonly content: readonly { readonly type: string; readonly text: string }[];
}

interface Reply {
  /** Default: 200. */
  readonly status?: number;
  readonly value: unknown;
}

interface PlayedSession {
  readonly events: object[];
  readonly streams: Set<ServerResponse>;
  readonly waiting: Map<string, (answer: ToolAnswer) => void>;
}

export class ClaudeAgentsApi implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly #items: object[] = [];
  readonly #sessions = new Map<string, PlayedSession>();
  readonly #server: Server;
  /** What the next heartbeats say: `stopping` asks the worker to end, `lost` that another worker has the lease. */
  lease: "active" | "stopping" | "lost" = "active";
  #ids = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response));
  }

  static async start(): Promise<ClaudeAgentsApi> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ClaudeAgentsApi(server);
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** How often a route was called. */
  count(route: RegExp): number {
    return this.received.filter((each) => route.test(each.route)).length;
  }

  /** Has a worker claim a session, also once more. */
  enqueue(session: string): void {
    this.#ids += 1;
    const secret = Buffer.from(JSON.stringify({ sessions_token: `token-of-${session}` })).toString("base64url");
    this.#items.push({
      id: `work-${this.#ids}`,
      environment_id: "env",
      data: { type: "session", id: session },
      secret,
    });
  }

  /** Has the model call a tool, and waits for the result. */
  call(session: string, name: string, input: object, permission = "allow"): Promise<ToolAnswer> {
    this.#ids += 1;
    const id = `toolu-${this.#ids}`;
    const { waiting } = this.#session(session);
    const answered = new Promise<ToolAnswer>((resolve) => {
      waiting.set(id, resolve);
    });
    this.#emit(session, { type: "agent.tool_use", id, name, input, evaluated_permission: permission });
    return answered;
  }

  /** Ends the model's turn, so that the worker leaves the session after its `maxIdleMs`. */
  idle(session: string): void {
    this.#emit(session, { type: "session.status_idle", stop_reason: { type: "end_turn" } });
  }

  terminate(session: string): void {
    this.#emit(session, { type: "session.status_terminated" });
  }

  #session(id: string): PlayedSession {
    const known = this.#sessions.get(id) ?? { events: [], streams: new Set(), waiting: new Map() };
    this.#sessions.set(id, known);
    return known;
  }

  #emit(session: string, event: object): void {
    this.#ids += 1;
    const told = { id: `event-${this.#ids}`, processed_at: new Date().toISOString(), ...event };
    const { events, streams } = this.#session(session);
    events.push(told);
    for (const stream of streams) stream.write(`event: message\ndata: ${JSON.stringify(told)}\n\n`);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", this.url);
    const route = `${request.method} ${pathname}`;
    this.received.push({ route, bearer: (request.headers.authorization ?? "").replace("Bearer ", "") });
    const body = await text(request);
    const [, session = ""] = /\/v1\/sessions\/([^/]+)/.exec(pathname) ?? [];
    if (route.endsWith("/events/stream")) {
      this.#stream(session, response);
      return;
    }
    const { status = 200, value } = this.#reply(route, session, body);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  }

  #reply(route: string, session: string, body: string): Reply {
    if (route.endsWith("/work/poll")) return { value: this.#items.shift() ?? null };
    if (route.endsWith("/heartbeat")) return this.#beat();
    if (/\/work\/[^/]+\/(ack|stop)$/.test(route)) return { value: {} };
    if (session === "") return { status: 404, value: { type: "error", error: { type: "not_found_error" } } };
    if (route.startsWith("GET") && route.endsWith("/events")) {
      return { value: { data: this.#session(session).events, next_page: null } };
    }
    if (route.startsWith("POST") && route.endsWith("/events")) {
      const { events }: { events: SentResult[] } = JSON.parse(body);
      for (const event of events) this.#take(session, event);
      return { value: { data: [] } };
    }
    return { value: { id: session, type: "session", status: "running", agent: { skills: [] }, resources: [] } };
  }

  #beat(): Reply {
    const refusal = { type: "error", error: { type: "invalid_request_error" } };
    if (this.lease === "lost") return { status: 412, value: refusal };
    const isActive = this.lease === "active";
    const last_heartbeat = new Date().toISOString();
    return { value: { last_heartbeat, lease_extended: isActive, state: this.lease, ttl_seconds: 2 } };
  }

  #stream(session: string, response: ServerResponse): void {
    const { streams } = this.#session(session);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    streams.add(response);
    response.on("close", () => streams.delete(response));
  }

  #take(session: string, result: SentResult): void {
    const { events, waiting } = this.#session(session);
    events.push(result);
    const texts = result.content.map((block) => block.text);
    waiting.get(result.tool_use_id)?.({ isError: result.is_error, text: texts.join("") });
    waiting.delete(result.tool_use_id);
  }
}
