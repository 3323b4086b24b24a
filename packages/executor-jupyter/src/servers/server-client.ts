import { BackendUnavailableError, ByteQueue, JsonLimitError, parseJson } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { errorCode } from "@fenced/executor-kit";
import { Agent, fetch, type RequestInit, type Response } from "undici";
import { textField } from "../fields.ts";
import type { ServerAddress } from "./server-settings.ts";

/** One request to a Jupyter server. */
export interface ServerRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Becomes the body, as JSON. */
  readonly json?: unknown;
  /** Becomes the body, as a browser sends a form. */
  readonly form?: URLSearchParams;
  /** Milliseconds within which the whole answer must arrive. Default: 20,000. */
  readonly deadlineMs?: number;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

const defaultDeadlineMs = 20_000;
/** A server that is busy starting many kernels accepts no connections; each request also has its own deadline. */
const connectMs = 120_000;
/** Maximum bytes held of an answer: of JSON, such as a large directory, and of the reason for a refusal. */
const [longestJson, longestReason] = [67_108_864, 65_536];

/** Talks HTTP with a Jupyter server. Its errors name the server, never the token. */
export class ServerClient implements AsyncDisposable {
  readonly address: ServerAddress;
  readonly #agent: Agent;

  constructor(address: ServerAddress) {
    this.address = address;
    const authorities = address.ca ? { ca: [...address.ca] } : {};
    this.#agent = new Agent({ connect: { ...authorities, timeout: connectMs }, keepAliveTimeout: 5000 });
  }

  /** The JSON of a successful answer; `undefined` for status 204. */
  async json(path: string, request: ServerRequest = {}): Promise<unknown> {
    const response = await this.send(path, request);
    if (!response.ok) throw await this.refusal(path, response);
    return response.status === 204 ? undefined : this.receivedJson(response);
  }

  /**
   * Any answer, whatever its status. Its body must be read or cancelled.
   *
   * @throws BackendUnavailableError if there is none.
   */
  async send(path: string, { method = "GET", json, form, deadlineMs, signal }: ServerRequest = {}): Promise<Response> {
    const deadline = AbortSignal.timeout(deadlineMs ?? defaultDeadlineMs);
    const init: RequestInit = {
      method,
      headers: {
        ...this.address.headers,
        ...(json === undefined ? {} : { "Content-Type": "application/json" }),
        ...(form && { "Content-Type": "application/x-www-form-urlencoded" }),
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(form && { body: form.toString() }),
      dispatcher: this.#agent,
      redirect: "manual",
      signal: signal ? joinSignals(deadline, signal) : deadline,
    };
    try {
      return await fetch(new URL(path, this.address.baseUrl), init);
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.#unreachable(cause);
    }
  }

  /**
   * The bytes of an answer's body, as they come; leaving early cancels it.
   *
   * @throws BackendUnavailableError if it is incomplete.
   */
  async *body(response: Response): AsyncGenerator<Uint8Array, void, void> {
    if (!response.body) return;
    try {
      for await (const chunk of response.body) if (chunk instanceof Uint8Array) yield chunk;
    } catch (cause) {
      throw this.#unreachable(cause);
    }
  }

  /**
   * The JSON of an answer's body.
   *
   * @throws BackendUnavailableError if it is incomplete, not JSON, or too long.
   */
  async receivedJson(response: Response): Promise<unknown> {
    const text = await this.#text(response, longestJson);
    try {
      return parseJson(text);
    } catch (cause) {
      throw this.#invalid(cause instanceof JsonLimitError ? `with ${cause.message}` : "that is not JSON", cause);
    }
  }

  /** What an unsuccessful answer means. Reads its body. */
  async refusal(path: string, response: Response): Promise<BackendUnavailableError> {
    const text = await this.#text(response, longestReason).catch(() => "");
    const said = messageOf(text) || response.statusText || "no reason given";
    if ([301, 302, 303, 307, 308, 401, 403].includes(response.status) && (await this.#isLockedOut())) {
      const problem = this.#hasToken ? "does not accept the token" : "requires a token or a password";
      return new BackendUnavailableError(`The Jupyter server at ${this.address.baseUrl} ${problem}`, {
        remedy:
          "Set `token` to the server's own token, which `jupyter server list` shows on its machine, or to one from the " +
          "Hub's page Token; or, if the server has no token, set `password`.",
      });
    }
    const place = `${this.address.baseUrl}${path.replace(/\?.*/, "")}`;
    return new BackendUnavailableError(`The Jupyter server answered ${response.status} at ${place}: ${said}`, {
      remedy: "Check the server's log.",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  get #hasToken(): boolean {
    return Object.keys(this.address.headers).some((name) => name.toLowerCase() === "authorization");
  }

  /** A refused POST does not show whether the token is wrong, so this asks for something harmless. */
  async #isLockedOut(): Promise<boolean> {
    const response = await this.send("api/kernelspecs");
    await response.body?.cancel();
    return !response.ok;
  }

  async #text(response: Response, longest: number): Promise<string> {
    const bytes = new ByteQueue();
    for await (const chunk of this.body(response)) {
      if (bytes.length + chunk.length > longest) throw this.#invalid(`longer than ${longest} bytes`);
      bytes.add(chunk);
    }
    return new TextDecoder().decode(bytes.take());
  }

  #invalid(what: string, cause?: unknown): BackendUnavailableError {
    return new BackendUnavailableError(`The Jupyter server at ${this.address.baseUrl} sent an answer ${what}`, {
      remedy: "Check that the address, with its path prefix, is that of a Jupyter server.",
      ...(cause === undefined ? {} : { cause }),
    });
  }

  #unreachable(cause: unknown): BackendUnavailableError {
    return new BackendUnavailableError(
      `The Jupyter server at ${this.address.baseUrl} cannot be reached: ${why(cause)}`,
      {
        remedy: remedyFor(cause, this.address.baseUrl),
        cause,
      },
    );
  }
}

function messageOf(text: string): string {
  try {
    return textField(parseJson(text), "message").slice(0, 1000);
  } catch {
    // An HTML page for people: the status must be enough.
    return "";
  }
}

/** What to do about a connection that failed, by its cause. */
function remedyFor(error: unknown, baseUrl: string): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = (errorCode(cause) ?? "").toUpperCase();
  const host = new URL(baseUrl).hostname;
  if (/SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|CERT_UNTRUSTED|CERT_SIGNATURE/.test(code)) {
    return "Pass the certificate of the authority that signed the server's certificate, in PEM, as `ca`.";
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `Use a host name for which the certificate was issued; it is not valid for ${host}.`;
  }
  if (/CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/.test(code)) {
    return "Renew the server's certificate, or set this machine's clock.";
  }
  if (baseUrl.startsWith("https:") && /WRONG_VERSION_NUMBER|PACKET_LENGTH|HTTP_REQUEST/.test(code)) {
    return "The server does not speak TLS there: use an address that begins with http:.";
  }
  if (baseUrl.startsWith("http:") && /^HPE_|^UND_ERR_SOCKET$|^ECONNRESET$/.test(code)) {
    return "If the server uses TLS, use an address that begins with https:. Otherwise check that it is a Jupyter server.";
  }
  const speaks = baseUrl.startsWith("https:") ? ", that it speaks TLS," : "";
  return `Check that it is running${speaks} and that the address, with its path prefix, is right.`;
}

function why(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "it does not answer";
  return error.cause instanceof Error ? error.cause.message : error.message;
}
