import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { afterMs, joinSignals, untilAborted } from "@fenced/core/abort";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { serverLimits, type McpServerOptions } from "../mcp-server-options.ts";
import { HeldBodies, type HeldBody } from "./held-bodies.ts";
import type { McpHandlerOptions, McpSessionStart } from "./mcp-handler-options.ts";
import { McpSession } from "./mcp-session.ts";
import { readBody } from "./read-body.ts";
import { refuse, type Refusal } from "./refuse.ts";
import { reportError } from "./report-error.ts";
import { watchResponse } from "./watch-response.ts";

const unknownSession = { status: 404, code: -32_001, message: "Session not found; start one with initialize." };
const noSession = { status: 400, message: "The request has no session id; start a session with initialize." };
const tooManySessions = {
  status: 503,
  message: "The server has reached its limit of sessions, and all are in use. End one, or try again later.",
};
const tooManyOfUser = {
  status: 429,
  message: "This user has reached the limit of sessions, and all are in use. End one, or try again later.",
};
const closing = { status: 503, message: "The server is shutting down; try again later." };

/** All sessions of a server: looks them up by id, limits their number, and ends each exactly once. */
export class McpSessions<User> {
  readonly #options: McpHandlerOptions<User>;
  readonly #limits: McpServerOptions;
  readonly #maxSessions: number;
  readonly #maxRequestBytes: number;
  readonly #bodies: HeldBodies<User>;
  readonly #open = new Map<string, McpSession<User>>();
  /** Sessions whose executors have not stopped yet, open or not. */
  readonly #sessions = new Set<McpSession<User>>();
  /** Sessions that are being created, with their users. */
  readonly #making = new Map<Promise<McpSession<User>>, User>();
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: McpHandlerOptions<User>) {
    this.#options = options;
    this.#limits = limitsOf(options);
    this.#maxSessions = options.maxSessions ?? 8;
    this.#maxRequestBytes = options.maxRequestBytes ?? 10_485_760;
    this.#bodies = new HeldBodies(4 * this.#maxRequestBytes, (one, other) => this.#isSame(one, other));
  }

  /** Passes a user's request to its session; a request without one starts a new session. */
  async handle(request: Request, user: User): Promise<Response> {
    const held = this.#bodies.hold(user);
    try {
      const response = await this.#answer(request, user, held);
      return watchResponse(response, request, { onOver: () => held.release() });
    } catch (error) {
      held.release();
      throw error;
    }
  }

  async #answer(request: Request, user: User, held: HeldBody): Promise<Response> {
    const read = await readBody(request, this.#maxRequestBytes, held);
    if ("refusal" in read) return refuse(read.refusal);
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#begin(request, user, read.body);
    const session = this.#open.get(id);
    // Another user's session looks like one that never existed.
    if (session === undefined || !this.#isSame(session.user, user)) return refuse(unknownSession);
    return session.handle(request, read.body);
  }

  /** Ends all sessions, and waits until their executors have stopped. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#making.keys());
    await Promise.all([...this.#sessions].map((session) => session.end()));
    await this.#allEnded();
  }

  async #allEnded(): Promise<void> {
    await Promise.all(this.#ending);
  }

  async #begin(request: Request, user: User, body: unknown): Promise<Response> {
    // Only an initialize request starts a session.
    if (![body].flat().some((message) => isInitializeRequest(message))) return refuse(noSession);
    if (this.#closing.signal.aborted) return refuse(closing);
    const room = this.#makeRoom(user);
    if ("refusal" in room) return refuse(room.refusal);
    const signal = joinSignals(request.signal, this.#closing.signal);
    const making = this.#make({ sessionId: randomUUID(), request, user, signal }, room.free);
    this.#making.set(making, user);
    const session = await making
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      })
      .finally(() => this.#making.delete(making));
    if (session === undefined) return refuse(request.signal.aborted ? noSession : closing);
    try {
      // A client that has left never learns the session's id.
      return request.signal.aborted ? refuse(noSession) : await session.handle(request, body);
    } finally {
      // A refused request has not started a session.
      if (session.id === undefined) await session.end();
    }
  }

  #isSame(one: User, other: User): boolean {
    const { sameUser = isDeepStrictEqual } = this.#options;
    return sameUser(one, other);
  }

  /** Ends an idle session if there is no room for another: one of the user's own if they have reached their limit. */
  #makeRoom(user: User): Room {
    const { maxSessionsPerUser = Infinity } = this.#options;
    const live = [...this.#sessions].filter((session) => !session.ended);
    const own = live.filter((session) => this.#isSame(session.user, user));
    const ownInTheMaking = [...this.#making.values()].filter((other) => this.#isSame(other, user));
    if (own.length + ownInTheMaking.length >= maxSessionsPerUser) return this.#evict(own, tooManyOfUser);
    if (live.length + this.#making.size >= this.#maxSessions) {
      return this.#evict(this.#replaceable(live, own, own.length + ownInTheMaking.length), tooManySessions);
    }
    // An evicted executor is gone before the next one is created, so there are never more executors than `maxSessions`.
    return { free: this.#sessions.size < this.#maxSessions ? Promise.resolve() : this.#allEnded() };
  }

  /**
   * The sessions that may make room for one more of a user's: those of users who would still have as many, otherwise the
   * user's own. Only someone without any session may take the place of somebody who has one.
   */
  #replaceable(
    live: readonly McpSession<User>[],
    own: readonly McpSession<User>[],
    ownCount: number,
  ): readonly McpSession<User>[] {
    const countOf = ({ user }: McpSession<User>): number =>
      live.filter((session) => this.#isSame(session.user, user)).length;
    const ofRicher = live.filter((session) => !own.includes(session) && countOf(session) > ownCount + 1);
    const idle = (sessions: readonly McpSession<User>[]): boolean =>
      sessions.some(({ idleSince }) => idleSince !== undefined);
    if (idle(ofRicher)) return ofRicher;
    return ownCount > 0 ? own : live;
  }

  #evict(sessions: readonly McpSession<User>[], refusal: Refusal): Room {
    const [longest] = sessions
      .filter(({ id, idleSince }) => id !== undefined && idleSince !== undefined)
      .toSorted((one, other) => (one.idleSince ?? 0) - (other.idleSince ?? 0));
    return longest ? { free: longest.end().then(() => this.#allEnded()) } : { refusal };
  }

  async #make(start: McpSessionStart<User>, free: Promise<void>): Promise<McpSession<User>> {
    const { sessionIdleMs = 1_800_000 } = this.#options;
    const executor = await this.#createExecutor(start, free);
    try {
      const session: McpSession<User> = new McpSession(executor, {
        ...this.#limits,
        sessionId: start.sessionId,
        user: start.user,
        sessionIdleMs,
        onOpen: (id) => void this.#open.set(id, session),
        onEnd: () => this.#end(session),
      });
      await connect(session, start.signal);
      this.#sessions.add(session);
      return session;
    } catch (error) {
      await this.#stop(executor);
      throw error;
    }
  }

  /** @throws BackendUnavailableError if it takes too long. */
  async #createExecutor(start: McpSessionStart<User>, free: Promise<void>): Promise<CodeExecutor> {
    const { createExecutor, startTimeoutMs = 60_000 } = this.#options;
    const late = new AbortController();
    const signal = joinSignals(start.signal, late.signal);
    const created = free.then(() => createExecutor({ ...start, signal }));
    const cancel = afterMs(startTimeoutMs, () => late.abort(createdLate(startTimeoutMs)));
    try {
      return await untilAborted(created, signal);
    } catch (error) {
      if (signal.aborted) created.then((executor) => this.#stop(executor)).catch(() => {});
      throw error;
    } finally {
      cancel();
    }
  }

  async #stop(executor: CodeExecutor): Promise<void> {
    await executor.stop().catch((failure: unknown) => reportError(failure, this.#options.onError));
  }

  #end(session: McpSession<User>): void {
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

/** Room for one more session once `free` resolves, or why there is none. */
type Room = { readonly free: Promise<void> } | { readonly refusal: Refusal };

/** Gives up when `signal` aborts: other servers may answer slowly. */
async function connect<User>(session: McpSession<User>, signal: AbortSignal): Promise<void> {
  const leave = (): void => void session.stopExecutor().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    signal.throwIfAborted();
    await session.connect();
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function createdLate(milliseconds: number): BackendUnavailableError {
  return new BackendUnavailableError(`The session's executor was not created within ${milliseconds} ms`, {
    remedy: "Check createExecutor, or raise startTimeoutMs.",
  });
}

function limitsOf(options: McpServerOptions): McpServerOptions {
  const names = Object.keys(serverLimits);
  return Object.fromEntries(Object.entries(options).filter(([name]) => names.includes(name)));
}
