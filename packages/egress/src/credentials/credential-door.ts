import { type IncomingMessage, type Server, type ServerResponse, validateHeaderValue } from "node:http";
import { TLSSocket } from "node:tls";
import type { HeaderCredential, NetworkCredential, PlaceholderCredential } from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import { parseHostPattern } from "@fenced/core/network";
import { connectSecurely } from "../destination/connect-securely.ts";
import type { Gatekeeper, Place } from "../destination/gatekeeper.ts";
import { Refusal } from "../destination/refusal.ts";
import type { Traffic } from "../destination/traffic.ts";
import { checkFraming, forwardRequest } from "../http/forward-request.ts";
import { requestServer } from "../http/http-door.ts";
import { Visitor } from "../visitor.ts";
import { Placeholders, type ReadPlaceholder } from "./placeholders.ts";
import { SessionAuthority } from "./session-authority.ts";

/** What the door needs from the proxy. */
export interface CredentialDoorOptions {
  readonly gatekeeper: Gatekeeper;
  /** Counts what is relayed. */
  readonly traffic: Traffic;
  readonly credentials: readonly NetworkCredential[];
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

/** A connection whose TLS is terminated here. */
interface Inside {
  readonly visitor: Visitor;
  readonly place: Place;
  readonly credentials: readonly NetworkCredential[];
}

/** Terminates TLS for the hosts that have a credential or a rule: puts the one into each request, and checks it by the other. */
export class CredentialDoor {
  readonly #options: CredentialDoorOptions;
  readonly #server: Server;
  readonly #inside = new WeakMap<object, Inside>();
  #authority: Promise<SessionAuthority> | undefined;

  constructor(options: CredentialDoorOptions) {
    this.#options = options;
    this.#server = requestServer((request, response) => this.#forward(request, response));
  }

  /** The certificate that clients must trust, as PEM; `undefined` if there are no credentials and rules. */
  async certificate(): Promise<string | undefined> {
    const { credentials, gatekeeper } = this.#options;
    return credentials.length > 0 || gatekeeper.hasRules ? (await this.#makeAuthority()).pem : undefined;
  }

  /** Whether requests to a place are read; a tunnel to any other is passed through unread. */
  reads(place: Place): boolean {
    return this.#options.gatekeeper.rulesFor(place) !== undefined || this.#credentialsFor(place).length > 0;
  }

  #credentialsFor({ host, port }: Place): NetworkCredential[] {
    return this.#options.credentials.filter((credential) => {
      const pattern = parseHostPattern(credential.host);
      return "host" in pattern && pattern.host === host && (pattern.port ?? 443) === port;
    });
  }

  /** Speaks TLS with a client that thinks it is talking to the place. */
  async enter(outer: Visitor, place: Place): Promise<void> {
    const credentials = this.#credentialsFor(place);
    const secureContext = (await this.#makeAuthority()).contextFor(place.host);
    const stream = new TLSSocket(outer.stream, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
    const visitor = new Visitor(stream, undefined, this.#options.headTimeoutMs);
    stream.once("close", () => outer.stream.destroy());
    outer.stream.once("close", () => stream.destroy());
    this.#inside.set(stream, { visitor, place, credentials });
    this.#server.emit("connection", stream);
  }

  #makeAuthority(): Promise<SessionAuthority> {
    this.#authority ??= SessionAuthority.create();
    return this.#authority;
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const inside = this.#inside.get(request.socket);
    if (!inside) return void response.destroy();
    const { visitor, place, credentials } = inside;
    await visitor.turn(response);
    checkFraming(request);
    const { gatekeeper, traffic } = this.#options;
    const host = authority(place);
    const path = pathOf(request, host);
    const visit = { protocol: "https", method: request.method ?? "GET", signal: visitor.signal } as const;
    // The connection may be older than the list of allowed hosts.
    await gatekeeper.admit(place.host, place.port, visit);
    const rules = gatekeeper.admitRequest(place, visit, path, request.rawHeaders);
    const ca = [...credentials, ...rules].flatMap((each) => each.ca ?? []);
    const patience = joinSignals(visitor.signal, AbortSignal.timeout(this.#options.connectTimeoutMs));
    const { added, placeholders } = await untilAborted(readCredentials(inside), patience).catch((error: unknown) => {
      throw error instanceof Refusal ? error : unreadable(place);
    });
    const { idleTimeoutMs: idleMs, headTimeoutMs: endedMs } = this.#options;
    const changes = placeholders && {
      ...(await placeholders.request(request, path, joinSignals(visitor.signal, AbortSignal.timeout(idleMs)))),
      changed: placeholders.answer.bind(placeholders),
    };
    const timeoutMs = this.#options.connectTimeoutMs;
    const secure = { host: place.host, ca, called: place.host, timeoutMs };
    const socket = await connectSecurely(await gatekeeper.open(place, visit), secure);
    traffic.follow(socket);
    forwardRequest(request, response, { socket, host, path, added, idleMs, endedMs, ...changes });
  }
}

/** A place in the form of a `Host` header. */
function authority({ host, port }: Place): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === 443 ? name : `${name}:${port}`;
}

/** @throws Refusal if the request is not for the connected host, or would echo its headers. */
function pathOf({ url = "", method }: IncomingMessage, host: string): string {
  if (method === "TRACE") throw new Refusal(405, "TRACE is not allowed: it would reveal the credential");
  if (url.startsWith("/") || (url === "*" && method === "OPTIONS")) return url;
  const target = URL.canParse(url) ? new URL(url) : undefined;
  if (target?.protocol !== "https:" || target.host !== host) {
    throw new Refusal(421, `this connection is for ${host} only`);
  }
  return `${target.pathname}${target.search}`;
}

/** What the credentials of a place add to a request, and replace in it. */
interface ReadCredentials {
  readonly added: readonly string[];
  readonly placeholders: Placeholders | undefined;
}

/** @throws Refusal without the cause, whose message may contain the credential. */
async function readCredentials({ credentials, place }: Inside): Promise<ReadCredentials> {
  try {
    const [lines, read] = await Promise.all([
      Promise.all(credentials.filter((each) => each.placeholder === undefined).map(readHeader)),
      Promise.all(credentials.filter((each) => each.placeholder !== undefined).map(readPlaceholder)),
    ]);
    return { added: lines.flat(), placeholders: read.length > 0 ? new Placeholders(read) : undefined };
  } catch (error) {
    throw error instanceof Refusal ? error : unreadable(place);
  }
}

async function readHeader({ header, value }: HeaderCredential): Promise<[string, string]> {
  const text: unknown = await value();
  // JavaScript callers may return anything, and null would be sent as "null".
  if (typeof text !== "string") throw new TypeError("not a string");
  validateHeaderValue(header, text);
  return [header, text];
}

async function readPlaceholder({ placeholder, value, in: parts }: PlaceholderCredential): Promise<ReadPlaceholder> {
  const text: unknown = await value();
  // A line break would begin another header.
  if (typeof text !== "string" || !/^[\x20-\x7e]{1,8192}$/.test(text)) {
    throw new Refusal(502, `the value of ${placeholder} is not 1 to 8192 printable ASCII characters`);
  }
  return { placeholder, value: text, parts: parts ?? ["header", "query", "body"] };
}

function unreadable({ host }: Place): Refusal {
  return new Refusal(502, `the credential for ${host} could not be read`);
}
