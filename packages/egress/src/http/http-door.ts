import { timingSafeEqual, createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Gatekeeper } from "../destination/gatekeeper.ts";
import { Refusal } from "../destination/refusal.ts";
import type { Traffic } from "../destination/traffic.ts";
import type { Visitor } from "../visitor.ts";
import { refusalOf, refuse, refuseStream } from "./answer.ts";
import { checkFraming, forwardRequest } from "./forward-request.ts";
import { valuesOf } from "./header-lines.ts";

/** What a door needs from the proxy. */
export interface HttpDoorOptions {
  readonly gatekeeper: Gatekeeper;
  /** Counts what is relayed. */
  readonly traffic: Traffic;
  readonly idleTimeoutMs: number;
  readonly headTimeoutMs: number;
  /** Connects the rest of a stream to a place; the client sends the first byte. */
  readonly tunnel: (visitor: Visitor, host: string, port: number, established: () => void) => Promise<void>;
}

/** Maximum bytes of a request's header. */
const maxHeaderSize = 16_384;

/** Speaks HTTP/1.1 with clients that use it as a proxy. */
export class HttpDoor {
  readonly #server: Server;
  readonly #options: HttpDoorOptions;
  readonly #visitors = new WeakMap<object, Visitor>();

  constructor(options: HttpDoorOptions) {
    this.#options = options;
    this.#server = requestServer((request, response) => this.#forward(request, response));
    // A client that has said everything may end its side, as `nc -N` does, and still gets its answer. Node has no option for it.
    Reflect.set(this.#server, "httpAllowHalfOpen", true);
    this.#server.on("connect", (request, stream, head) => void this.#connect(request, stream, head));
  }

  enter(visitor: Visitor): void {
    this.#visitors.set(visitor.stream, visitor);
    this.#server.emit("connection", visitor.stream);
  }

  async #connect(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const visitor = this.#visitors.get(stream);
    if (!visitor) return void stream.destroy();
    visitor.arrived();
    try {
      checkSecret(request, visitor);
      const [, host = "", port] = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(request.url ?? "") ?? [];
      if (port === undefined || Number(port) < 1 || Number(port) > 65_535) {
        throw new Refusal(400, "CONNECT must name a host and a port");
      }
      if (head.length > 0) stream.unshift(head);
      await this.#options.tunnel(visitor, host, Number(port), () => {
        stream.write("HTTP/1.1 200 Connection established\r\n\r\n");
      });
    } catch (error) {
      refuseStream(stream, refusalOf(error));
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gatekeeper, traffic, idleTimeoutMs: idleMs, headTimeoutMs: endedMs } = this.#options;
    const visitor = this.#visitors.get(request.socket);
    if (!visitor) return void response.destroy();
    await visitor.turn(response);
    checkSecret(request, visitor);
    checkFraming(request);
    const url = targetOf(request);
    const visit = { protocol: "http", method: request.method ?? "GET", signal: visitor.signal } as const;
    const place = await gatekeeper.admit(url.hostname, Number(url.port === "" ? 80 : url.port), visit);
    const path = `${url.pathname}${url.search}`;
    gatekeeper.admitRequest(place, visit, path, request.rawHeaders);
    const socket = await gatekeeper.open(place, visit);
    traffic.follow(socket);
    forwardRequest(request, response, { socket, host: url.host, path, added: [], idleMs, endedMs });
  }
}

/** A server that is given its connections, parses requests strictly, and refuses those whose `handle` rejects. */
export function requestServer(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Server {
  // Its own time limits need a socket; the `Visitor` keeps time instead.
  const server = createServer({ maxHeaderSize, insecureHTTPParser: false, keepAliveTimeout: 0, requestTimeout: 0 });
  // Headers are limited by bytes, not number: Node would drop those beyond its limit, which may say where the message ends.
  server.maxHeadersCount = 0;
  server.on("request", (request, response) => {
    void handle(request, response).catch((error: unknown) => {
      request.resume();
      refuse(response, refusalOf(error));
    });
  });
  server.on("clientError", (error, stream) => {
    const huge = "code" in error && error.code === "HPE_HEADER_OVERFLOW";
    const refusal = huge
      ? new Refusal(431, `the request's header is longer than ${maxHeaderSize} bytes`)
      : new Refusal(400, "the request is not valid HTTP/1.1");
    refuseStream(stream, refusal);
  });
  return server;
}

/** The address of a plain request; ignores the `Host` header. */
function targetOf({ url = "" }: IncomingMessage): URL {
  if (url.startsWith("/") || url === "*") {
    throw new Refusal(400, "this is a proxy: send absolute URLs, such as http://example.com/");
  }
  const target = URL.canParse(url) ? new URL(url) : undefined;
  if (target?.protocol !== "http:") {
    throw new Refusal(400, "the proxy accepts http:// addresses, and CONNECT for everything else");
  }
  return target;
}

/** @throws Refusal unless the client knows the secret, if there is one. */
function checkSecret({ rawHeaders }: IncomingMessage, { secret }: Visitor): void {
  if (secret === undefined) return;
  const [given = "", ...others] = valuesOf(rawHeaders, "proxy-authorization");
  const [, encoded = ""] = /^basic +(\S+)$/i.exec(given) ?? [];
  const password = Buffer.from(encoded, "base64")
    .toString()
    .replace(/^[^:]*:/, "");
  if (others.length === 0 && isSame(password, secret)) return;
  throw new Refusal(407, "proxy authentication required: use the user name and password in the proxy's URL");
}

/** Compares in constant time, which reveals nothing about the secret. */
export function isSame(given: string, secret: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
