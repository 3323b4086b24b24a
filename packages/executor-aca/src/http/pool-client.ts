import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError, FencedError } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { Agent, request, type Dispatcher } from "undici";
import type { z } from "zod";
import { tokenScope, type AccessTokenSource } from "../token-credential.ts";
import { readError, readJson } from "./read-answer.ts";
import { ConnectionError, ServiceError } from "./service-error.ts";

/** One call of the service. */
export interface PoolCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Parts of the path after the pool's address, not encoded. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Creates a new body for each attempt. */
  readonly body?: () => string | AsyncIterable<Uint8Array>;
  /**
   * Whether the call may be repeated after it may have been carried out. If not, it is repeated only if the service
   * says that it was not carried out, or if it never reached the service.
   */
  readonly repeatable: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Whether the call ends or leaves a session: such calls are sent even after `settle`. */
  readonly last?: boolean;
}

/** How a client reaches its pool. */
export interface PoolAccess {
  /** The pool's address, with a `/` at the end. */
  readonly baseUrl: URL;
  readonly credential: AccessTokenSource;
  /** Milliseconds for which a call is retried while the service is busy or unreachable. */
  readonly retryForMs: number;
}

/** What is known about a pool's behavior; shared by all sessions of an executor. */
interface PoolHabits {
  /** It expects bodies in `properties`. */
  wrapsBodies: boolean;
  /** It refuses the requested output limit. */
  refusesOutputLimit: boolean;
  /** It keeps executions under the `operation-id` that they were sent with. `undefined` if not yet known. */
  keepsOperationIds: boolean | undefined;
}

/** Processes an answer; must read its body or discard it. @param token - keep it out of errors and logs. */
type ReadAnswer<T> = (response: Dispatcher.ResponseData, token: string) => Promise<T>;

/** Milliseconds between the first two attempts; each further pause is twice as long. */
export const firstPauseMs = 200;
/** The longest pause between two attempts, in milliseconds, unless the service asks for more. */
export const longestPauseMs = 5000;

/** Sends calls to a pool, each with a fresh token, and retries them if that is safe and may help. */
export class PoolClient {
  readonly habits: PoolHabits = { wrapsBodies: false, refusesOutputLimit: false, keepsOperationIds: undefined };
  readonly #access: PoolAccess;
  readonly #settling = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #agent = newAgent();

  constructor(access: PoolAccess) {
    this.#access = access;
  }

  get baseUrl(): URL {
    return this.#access.baseUrl;
  }

  /** Milliseconds for which a call is repeated while the service is busy or unreachable. */
  get retryForMs(): number {
    return this.#access.retryForMs;
  }

  /**
   * Sends a call, and returns what `read` makes of the answer.
   *
   * @throws ServiceError if the service refuses it, ConnectionError if there is no answer; `signal.reason` if aborted;
   * ExecutorStoppedError after `settle`.
   */
  async send<T>(call: PoolCall, read: ReadAnswer<T>): Promise<T> {
    const sending = this.#send(call, read);
    this.#underWay.add(sending);
    try {
      return await sending;
    } finally {
      this.#underWay.delete(sending);
    }
  }

  /**
   * Sends a call, and returns the checked body of the answer. @throws as `send`, and BackendUnavailableError if it
   * does not match the schema.
   */
  async json<T>(call: PoolCall, schema: z.ZodType<T>): Promise<T> {
    return this.send(call, (response, token) => readJson(response, schema, token));
  }

  /**
   * From now on sends only calls that are `last`. Waits for the calls in progress, so that none of them reaches the
   * service after a `last` one and creates a new session; aborts those that take longer than `patienceMs`.
   */
  async settle(patienceMs: number): Promise<void> {
    this.#settling.abort();
    const enough = new AbortController();
    const settled = Promise.allSettled(this.#underWay).then(() => enough.abort());
    await Promise.race([settled, sleep(patienceMs, undefined, { signal: enough.signal }).catch(() => {})]);
    await this.#agent.destroy();
    this.#agent = newAgent();
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send<T>(call: PoolCall, read: ReadAnswer<T>): Promise<T> {
    const giveUp = performance.now() + this.#access.retryForMs;
    let askedForNewToken = false;
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      try {
        return await this.#attempt(call, read);
      } catch (error) {
        call.signal?.throwIfAborted();
        const expired: boolean = error instanceof ServiceError && error.status === 401 && !askedForNewToken;
        askedForNewToken = expired;
        if (expired) continue;
        const wait = Math.max(pause * (0.5 + Math.random()), retryAfter(error) ?? 0);
        if (!mayRepeat(call, error)) throw error;
        this.#assertOpen(call);
        if (performance.now() + wait > giveUp) throw error;
        await this.#pause(wait, call);
      }
    }
  }

  async #pause(milliseconds: number, call: PoolCall): Promise<void> {
    const signals = [call.signal, call.last === true ? undefined : this.#settling.signal];
    const signal = joinSignals(...signals);
    await sleep(milliseconds, undefined, { signal }).catch(() => {});
    call.signal?.throwIfAborted();
  }

  #assertOpen({ last }: PoolCall): void {
    if (!this.#settling.signal.aborted || last === true) return;
    throw new ExecutorStoppedError("The executor was stopped during this call", {
      remedy: "Call again to start a new session.",
    });
  }

  async #attempt<T>(call: PoolCall, read: ReadAnswer<T>): Promise<T> {
    const token = await this.#token(call.signal);
    this.#assertOpen(call);
    const url = new URL(call.path.map((part) => encodeURIComponent(part)).join("/"), this.#access.baseUrl);
    for (const [name, value] of Object.entries(call.query)) url.searchParams.set(name, value);
    const body = call.body?.() ?? null;
    let response: Dispatcher.ResponseData;
    try {
      response = await request(url, {
        method: call.method,
        dispatcher: this.#agent,
        headers: { ...call.headers, authorization: `Bearer ${token}`, "user-agent": "fenced-executor-aca" },
        body: typeof body === "object" && body !== null ? Readable.from(body, { objectMode: false }) : body,
        signal: call.signal ?? null,
      });
    } catch (error) {
      if (FencedError.isInstance(error)) throw error;
      throw new ConnectionError(error);
    }
    if (response.statusCode >= 200 && response.statusCode < 300) return read(response, token);
    throw await readError(response, token);
  }

  async #token(signal: AbortSignal | undefined): Promise<string> {
    let answer: { readonly token: string } | null;
    try {
      answer = await this.#access.credential.getToken(tokenScope, signal ? { abortSignal: signal } : {});
    } catch (cause) {
      signal?.throwIfAborted();
      if (FencedError.isInstance(cause)) throw cause;
      throw new BackendUnavailableError(
        `The credential returned no token: ${cause instanceof Error ? cause.message : String(cause)}`,
        {
          remedy: "Sign in (`az login`), or check the credential's settings.",
          cause,
        },
      );
    }
    if (answer) return answer.token;
    throw new BackendUnavailableError("The credential returned no token", {
      remedy: `Use a credential that returns one for ${tokenScope}.`,
    });
  }
}

function newAgent(): Agent {
  return new Agent({ connect: { timeout: 10_000 }, headersTimeout: 300_000, bodyTimeout: 120_000 });
}

function mayRepeat({ repeatable }: PoolCall, error: unknown): boolean {
  if (error instanceof ConnectionError) return repeatable || !error.sent;
  return error instanceof ServiceError && error.isPassing && (repeatable || error.isRefusal);
}

/** The pause that the service asks for, in milliseconds. */
export function retryAfter(error: unknown): number | undefined {
  return error instanceof ServiceError ? error.retryAfterMs : undefined;
}
