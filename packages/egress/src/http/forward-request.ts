import { type IncomingMessage, request as startRequest, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline, type Readable, type Transform } from "node:stream";
import { errorCode, Refusal } from "../destination/refusal.ts";
import { refuse } from "./answer.ts";
import { forwarded, type HeaderLines, valuesOf } from "./header-lines.ts";

/** What is sent in place of the client's request. */
export interface ChangedRequest {
  readonly path: string;
  /** As the client could have sent them. */
  readonly headers: HeaderLines;
  /** Begins to read the body. */
  readonly body: () => Readable;
}

/** What the client gets in place of the host's answer. */
export interface ChangedAnswer {
  readonly statusMessage: string;
  readonly headers: HeaderLines;
  /** What the body passes through. */
  readonly through: readonly Transform[];
}

/** Where a request goes, and what to add on the way. */
export interface Onward extends Pick<ChangedRequest, "path">, Partial<Pick<ChangedRequest, "headers" | "body">> {
  /** An open connection for this request only. */
  readonly socket: Socket;
  /** The value of the `Host` header. */
  readonly host: string;
  /** Default: the answer as it is. */
  readonly changed?: ((answer: IncomingMessage, hasBody: boolean) => ChangedAnswer) | undefined;
  /** Headers to add; the client's headers of the same names are dropped. */
  readonly added: HeaderLines;
  /** Milliseconds without a byte before it is closed. */
  readonly idleMs: number;
  /** The same once the client has ended its side: it may only have said everything, or it has left. */
  readonly endedMs: number;
}

/** Maximum bytes of a response's header. */
const maxHeaderSize = 65_536;

/**
 * Passes a request on, and its answer back. Both are parsed and rewritten, so bytes that another parser might take for
 * two requests go out as the one request that this side saw.
 */
export function forwardRequest(request: IncomingMessage, response: ServerResponse, onward: Onward): void {
  const { socket } = onward;
  const client = request.socket;
  // The client may have left while the connection was opened; otherwise only the idle limit would close it.
  if (response.destroyed) return void socket.destroy();
  const fail = (error: unknown): void => {
    socket.destroy();
    refuse(
      response,
      error instanceof Refusal ? error : new Refusal(502, `${onward.host} closed the connection: ${errorCode(error)}`),
    );
  };
  try {
    const outgoing = startRequest({
      method: request.method ?? "GET",
      path: onward.path,
      headers: requestHeaders(request, onward),
      createConnection: () => socket,
      setHost: false,
      maxHeaderSize,
    });
    outgoing.on("error", fail);
    outgoing.on("timeout", () => fail(new Refusal(504, `${onward.host} does not answer`)));
    const hurry = (): void => void outgoing.setTimeout(Math.min(onward.idleMs, onward.endedMs));
    if (client.readableEnded) hurry();
    else outgoing.setTimeout(onward.idleMs);
    client.once("end", hurry);
    // Headers are limited by bytes, not number: Node would drop those beyond its limit, which may say where the message ends.
    outgoing.maxHeadersCount = 0;
    // The request did not ask for another protocol; without a listener, an upgrade would go unnoticed.
    outgoing.once("upgrade", () => fail(undefined));
    outgoing.once("response", (answer) => sendBack(answer, response, onward));
    response.once("close", () => {
      client.off("end", hurry);
      socket.destroy();
    });
    // Not `pipeline`: the response notices a client that leaves, and a client that does not read the answer may keep
    // sending.
    (onward.body?.() ?? request).pipe(outgoing);
  } catch {
    fail(new Refusal(400, "the request has a path, a method or a header that cannot be forwarded"));
  }
}

function requestHeaders(request: IncomingMessage, { host, added, headers = request.rawHeaders }: Onward): string[] {
  const names = added.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const kept = forwarded(headers, new Set(["host", ...names]));
  const chunked = valuesOf(headers, "transfer-encoding").length > 0;
  return ["Host", host, ...kept, ...added, ...(chunked ? ["Transfer-Encoding", "chunked"] : []), "Connection", "close"];
}

function sendBack(answer: IncomingMessage, response: ServerResponse, { changed }: Onward): void {
  const { statusCode = 502 } = answer;
  const hasBody = response.req.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  const { statusMessage, headers, through } = changed?.(answer, hasBody) ?? unchanged(answer);
  try {
    response.writeHead(statusCode, statusMessage, forwarded(headers));
  } catch {
    answer.destroy();
    refuse(response, new Refusal(502, "the answer has a header that cannot be forwarded"));
    return;
  }
  pipeline([answer, ...through, response], () => {});
}

function unchanged({ statusMessage = "", rawHeaders }: IncomingMessage): ChangedAnswer {
  return { statusMessage, headers: rawHeaders, through: [] };
}

/** @throws Refusal for a body whose end two parsers may see in different places. */
export function checkFraming({ rawHeaders, httpVersion }: IncomingMessage): void {
  const encodings = valuesOf(rawHeaders, "transfer-encoding");
  const lengths = valuesOf(rawHeaders, "content-length");
  if (encodings.length === 0 && lengths.length <= 1) return;
  const plain = encodings.length === 1 && encodings[0]?.trim().toLowerCase() === "chunked";
  if (!plain || lengths.length > 0 || httpVersion !== "1.1") {
    throw new Refusal(400, "the request's Transfer-Encoding and Content-Length contradict each other");
  }
}
