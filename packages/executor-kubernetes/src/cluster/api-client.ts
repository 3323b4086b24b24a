import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { FencedError } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { HttpsProxyAgent } from "https-proxy-agent";
import type { WebSocket } from "ws";
import { parseJson, textOf } from "./answer-text.ts";
import { apiError, ApiStatusError, isThere, notUnderstood, statusOf, unreachable } from "./api-error.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";
import { openExecSocket, type SecureOptions } from "./exec-socket.ts";

/** Milliseconds within which a request must be answered. */
const answerMs = 30_000;
/** Milliseconds for which requests to an unreachable server are retried: it may be restarting. */
const patienceMs = 10_000;
const retryMs = 500;
/** Milliseconds of silence after which a watch ends, since its connection may have died unnoticed. */
const silentMs = 20_000;
/** Maximum length of an answer, in bytes. */
const longestAnswer = 8_388_608;

/** A request to the API. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** From `/api/`, with the query. */
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Retry for a while if the server cannot be reached. Default: true. */
  readonly patient?: boolean;
}

/** The parts of a cluster's API that sessions need. */
export class ApiClient {
  readonly cluster: ClusterAccess;
  readonly #agent: http.Agent;

  constructor(cluster: ClusterAccess) {
    this.cluster = cluster;
    this.#agent = agentFor(cluster);
  }

  /**
   * @returns the answer, which is JSON.
   * @throws BackendUnavailableError if the server cannot be reached or refuses; the signal's reason.
   */
  async send(request: ApiRequest): Promise<unknown> {
    const answer = await this.#authorised(request);
    const parsed = parseJson(await textOf(answer, longestAnswer, answerMs));
    request.signal?.throwIfAborted();
    if (!isSuccess(answer)) throw apiError(answer.statusCode ?? 0, parsed, this.cluster);
    // A truncated answer must not look like a missing object.
    if (parsed === undefined) throw notUnderstood(this.cluster);
    return parsed;
  }

  /**
   * Creates an object, and returns it; `undefined` if it exists already, because an earlier attempt whose answer was lost
   * created it.
   */
  async create(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.send({ method: "POST", path, body, signal });
    } catch (error) {
      if (isThere(error)) return undefined;
      throw error;
    }
  }

  /** Deletes an object; does nothing if it is gone. */
  async delete(path: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.send({ method: "DELETE", path, ...(signal ? { signal } : {}) });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  /**
   * The events of a watch, one JSON value a line, until the server or the caller ends it, or the server is silent for 20 s.
   *
   * @throws like `send`.
   */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<unknown, void, void> {
    const request: ApiRequest = { method: "GET", path, signal };
    const answer = await this.#authorised(request);
    if (!isSuccess(answer)) {
      const said = await textOf(answer, longestAnswer, answerMs);
      throw apiError(answer.statusCode ?? 0, parseJson(said), this.cluster);
    }
    let rest = "";
    const silence = setTimeout(() => answer.destroy(), silentMs);
    try {
      for await (const chunk of answer.setEncoding("utf8")) {
        silence.refresh();
        const lines = `${rest}${String(chunk)}`.split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield parseJson(line);
        if (rest.length > longestAnswer) return;
      }
    } catch {
      // The server ended the watch, or the connection broke; the caller then asks for the current state.
      signal.throwIfAborted();
    } finally {
      clearTimeout(silence);
      answer.destroy();
    }
  }

  /**
   * Starts a program in a pod, over a WebSocket.
   *
   * @throws like `send`.
   */
  async exec(path: string, signal: AbortSignal): Promise<WebSocket> {
    const open = (credentials: Credentials) => {
      const url = this.#url(path);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      return openExecSocket(url, {
        ...this.#secured(credentials),
        headers: headersOf(credentials),
        signal,
      });
    };
    try {
      return await open(await this.#credentials(signal)).catch(async (error: unknown) => {
        if (!(error instanceof ApiStatusError) || error.status !== 401) throw error;
        return open(await this.#credentials(signal, true));
      });
    } catch (error) {
      signal.throwIfAborted();
      if (FencedError.isInstance(error)) throw error;
      if (error instanceof ApiStatusError) throw apiError(error.status, error.body, this.cluster);
      throw unreachable(this.cluster, error);
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  /** Tries once more, with new credentials, if the first ones are refused. */
  async #authorised(request: ApiRequest): Promise<http.IncomingMessage> {
    const { signal } = request;
    const answer = await this.#patiently(request, await this.#credentials(signal));
    signal?.throwIfAborted();
    if (answer.statusCode !== 401) return answer;
    answer.resume();
    return this.#patiently(request, await this.#credentials(signal, true));
  }

  /** Does not wait for a slow exec plugin after the caller has given up. */
  #credentials(signal: AbortSignal | undefined, renew = false): Promise<Credentials> {
    return untilAborted(this.cluster.credentials(renew), signal);
  }

  /** Retries for a while: a restarting server refuses connections, or answers that it is not ready. */
  async #patiently(request: ApiRequest, credentials: Credentials): Promise<http.IncomingMessage> {
    const end = performance.now() + (request.patient === false ? 0 : patienceMs);
    for (;;) {
      const answer = await this.#once(request, credentials).catch((error: unknown) => {
        request.signal?.throwIfAborted();
        if (performance.now() >= end || !isTransient(error)) throw unreachable(this.cluster, error);
      });
      const pause = answer ? pauseAfter(answer) : retryMs;
      if (answer && (pause === undefined || performance.now() + pause > end)) return answer;
      answer?.resume();
      await sleep(pause, undefined, request.signal ? { signal: request.signal } : {});
    }
  }

  #once({ method, path, body, signal }: ApiRequest, credentials: Credentials): Promise<http.IncomingMessage> {
    const url = this.#url(path);
    const content = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = (url.protocol === "https:" ? https : http).request(url, {
        method,
        ...this.#secured(credentials),
        headers: {
          accept: "application/json",
          ...(content === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
          ...headersOf(credentials),
        },
        ...(signal ? { signal } : {}),
      });
      const late = setTimeout(() => request.destroy(new Error(`no answer within ${answerMs / 1000} s`)), answerMs);
      request.once("response", (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
      request.once("error", (error) => {
        clearTimeout(late);
        reject(error);
      });
      request.end(content);
    });
  }

  #url(path: string): URL {
    const { server } = this.cluster;
    // The server's address may have a path.
    return new URL(`${server.origin}${server.pathname.replace(/\/$/, "")}${path}`);
  }

  /** TLS settings of all connections, including WebSockets. A proxy's agent would apply them to the proxy, so it has none. */
  #secured({ certificate }: Credentials): SecureOptions {
    const { authority, insecure, serverName } = this.cluster;
    return {
      agent: this.#agent,
      ...(authority === undefined ? {} : { ca: authority }),
      ...(insecure === true ? { rejectUnauthorized: false } : {}),
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...certificate,
    };
  }
}

/** Milliseconds to wait before asking a busy or unready server again; `undefined` if it is neither. */
function pauseAfter({ statusCode = 0, headers }: http.IncomingMessage): number | undefined {
  if (![429, 502, 503, 504].includes(statusCode)) return undefined;
  // Spreads the retries of clients that were told to wait at the same time.
  return Math.max(retryMs, (Number(headers["retry-after"]) || 0) * 1000) * (1 + Math.random() / 4);
}

function agentFor({ proxy, server }: ClusterAccess): http.Agent {
  if (proxy) return new HttpsProxyAgent(proxy, { keepAlive: true });
  return new (server.protocol === "https:" ? https : http).Agent({ keepAlive: true });
}

function headersOf({ token }: Credentials): Record<string, string> {
  return { "user-agent": "fenced", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
}

function isSuccess({ statusCode = 0 }: http.IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/** Errors that waiting does not fix: untrusted certificates, unknown names. */
const permanent = /CERT|UNABLE_TO|SELF_SIGNED|ENOTFOUND|EPROTO|^ERR_/;

function isTransient(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isTransient);
  return !permanent.test(String(Reflect.get(Object(error), "code")));
}
