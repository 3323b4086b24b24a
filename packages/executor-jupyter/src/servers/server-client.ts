import { BackendUnavailableError } from "@fenced/core";
import { Agent, fetch, type RequestInit, type Response } from "undici";
import { textField } from "../fields.ts";
import type { ServerAddress } from "./server-settings.ts";

/** One request to a Jupyter server. */
export interface ServerRequest {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Becomes the body, as JSON. */
  readonly json?: unknown;
  /** Milliseconds until the whole answer must be there. Default: 20,000. */
  readonly deadlineMs?: number;
  /** Gives the request up. */
  readonly signal?: AbortSignal;
}

const defaultDeadlineMs = 20_000;

/** Talks HTTP with a Jupyter server. Its errors name the server, never the token. */
export class ServerClient implements AsyncDisposable {
  readonly address: ServerAddress;
  readonly #agent: Agent;

  constructor(address: ServerAddress) {
    this.address = address;
    this.#agent = new Agent({ connect: address.ca ? { ca: [...address.ca] } : {}, keepAliveTimeout: 5000 });
  }

  /** The JSON of an answer that is a success; of status 204, `undefined`. */
  async json(path: string, request: ServerRequest = {}): Promise<unknown> {
    const response = await this.send(path, request);
    if (!response.ok) throw await this.refusal(path, response);
    return response.status === 204 ? undefined : this.received(response.json());
  }

  /**
   * Any answer, whatever its status. Its body must be read or cancelled.
   *
   * @throws BackendUnavailableError if there is none.
   */
  async send(path: string, { method = "GET", json, deadlineMs, signal }: ServerRequest = {}): Promise<Response> {
    const deadline = AbortSignal.timeout(deadlineMs ?? defaultDeadlineMs);
    const init: RequestInit = {
      method,
      headers: { ...this.address.headers, ...(json === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      dispatcher: this.#agent,
      redirect: "manual",
      signal: signal ? AbortSignal.any([deadline, signal]) : deadline,
    };
    try {
      return await fetch(new URL(path, this.address.baseUrl), init);
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.#unreachable(cause);
    }
  }

  /**
   * What an answer's body comes to.
   *
   * @throws BackendUnavailableError if it does not come whole.
   */
  async received<T>(body: Promise<T>): Promise<T> {
    try {
      return await body;
    } catch (cause) {
      throw this.#unreachable(cause);
    }
  }

  /** What an answer that is no success means. Reads its body. */
  async refusal(path: string, response: Response): Promise<BackendUnavailableError> {
    const said = await messageOf(response);
    if ([301, 302, 303, 307, 308, 401, 403].includes(response.status) && (await this.#isLockedOut())) {
      return new BackendUnavailableError(`The Jupyter server at ${this.address.baseUrl} does not accept the token`, {
        remedy: "Give the server's own token: `jupyter server list` shows it on its machine.",
      });
    }
    const place = `${this.address.baseUrl}${path.replace(/\?.*/, "")}`;
    return new BackendUnavailableError(`The Jupyter server answered ${response.status} at ${place}: ${said}`, {
      remedy: "Look into the server's log.",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  /** A POST that is refused says nothing of the token, so something harmless is asked for. */
  async #isLockedOut(): Promise<boolean> {
    const response = await this.send("api/kernelspecs");
    await response.body?.cancel();
    return !response.ok;
  }

  #unreachable(cause: unknown): BackendUnavailableError {
    return new BackendUnavailableError(
      `The Jupyter server at ${this.address.baseUrl} cannot be reached: ${why(cause)}`,
      {
        remedy: "Check that it runs and that the address, with its path prefix, is right.",
        cause,
      },
    );
  }
}

async function messageOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const message = textField(JSON.parse(text), "message");
    if (message !== "") return message;
  } catch {
    // A page for people; the status has to do.
  }
  return response.statusText === "" ? "no reason given" : response.statusText;
}

function why(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "it does not answer";
  return error.cause instanceof Error ? error.cause.message : error.message;
}
