import type { OnReadOpts, Socket } from "node:net";
import type { NetworkDecision, UpstreamProxy } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { canonicalHost, isAddress, matchesHost, parseHostPattern } from "@fenced/core/network";
import { connectSecurely } from "./connect-securely.ts";
import { dialFirst } from "./dial.ts";
import { Refusal } from "./refusal.ts";

/** Maximum bytes of the proxy's answer to CONNECT. */
const maxAnswer = 16_384;
/** What code learns of the proxy: neither its name nor its address. */
const called = "the upstream proxy";

/** A name or an address, and a port. */
type Target = Pick<NetworkDecision, "host" | "port">;

/** What a route needs besides the proxy. */
export interface UpstreamRouteOptions {
  /** Looks up the proxy's name. */
  readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
  readonly connectTimeoutMs: number;
}

/** How a connection is opened. */
export interface RouteOptions {
  readonly signal: AbortSignal;
  readonly onread: OnReadOpts | undefined;
}

/** The way through an upstream proxy: a tunnel for each connection. */
export class UpstreamRoute {
  readonly #proxy: UpstreamProxy;
  readonly #options: UpstreamRouteOptions;

  constructor(proxy: UpstreamProxy, options: UpstreamRouteOptions) {
    this.#proxy = proxy;
    this.#options = options;
  }

  /** Whether connections to a place go through the proxy. */
  leadsTo({ host, port }: Target): boolean {
    return !(this.#proxy.noProxy ?? []).some((entry) => {
      const pattern = parseHostPattern(entry);
      return "host" in pattern && matchesHost(pattern, host, port);
    });
  }

  /**
   * A connection to a place, by its name or address, through the proxy.
   *
   * @throws Refusal that names neither the proxy nor its credentials.
   */
  async open(place: Target, { signal, onread }: RouteOptions): Promise<Socket> {
    const { protocol, hostname, port } = new URL(this.#proxy.url);
    const secure = protocol === "https:";
    const authorization = await this.#authorization(signal);
    const host = canonicalHost(hostname) ?? hostname;
    const answer = new ConnectAnswer(onread);
    const socket = await dialFirst(await this.#lookUp(host, signal), Number(port || (secure ? 443 : 80)), {
      called,
      signal,
      // TLS reads the bytes of its connection itself.
      onread: secure || !onread ? undefined : answer.onread,
    });
    try {
      const stream = secure ? await this.#secured(socket, host) : socket;
      if (secure || !onread) answer.readFrom(stream);
      const name = isAddress(place.host) && place.host.includes(":") ? `[${place.host}]` : place.host;
      const target = `${name}:${place.port}`;
      stream.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
      await untilAborted(this.#established(answer.read(stream), target), signal);
      return stream;
    } catch (error) {
      socket.destroy();
      if (error instanceof Refusal || !signal.aborted) throw error;
      throw new Refusal(504, `${called} did not answer in time`);
    }
  }

  async #lookUp(host: string, signal: AbortSignal): Promise<readonly string[]> {
    if (isAddress(host)) return [host];
    const found = await untilAborted(this.#options.resolve(host, signal), signal).catch(() => []);
    const addresses = found.filter((address) => isAddress(canonicalHost(address) ?? ""));
    if (addresses.length > 0) return addresses.slice(0, 8);
    throw new Refusal(502, `${called} could not be resolved: check the \`url\` of \`upstreamProxy\``);
  }

  #secured(socket: Socket, host: string): Promise<Socket> {
    const { ca } = this.#proxy;
    const timeoutMs = this.#options.connectTimeoutMs;
    return connectSecurely(socket, { host, ca: ca === undefined ? [] : [ca], called, timeoutMs });
  }

  /** The header with the credentials, with its line's end; empty without credentials. */
  async #authorization(signal: AbortSignal): Promise<string> {
    const { username, password } = this.#proxy;
    if (username === undefined || !password) return "";
    // What it throws may contain the password.
    const read = Promise.resolve().then(password);
    const text: unknown = await untilAborted(read, signal).catch(() => undefined);
    if (typeof text !== "string" || !/^[\x20-\x7e]{1,8192}$/.test(text)) {
      throw new Refusal(
        502,
        `the password of ${called} could not be read, or is not 1 to 8192 printable ASCII characters`,
      );
    }
    return `Proxy-Authorization: Basic ${Buffer.from(`${username}:${text}`).toString("base64")}\r\n`;
  }

  async #established(answer: Promise<number | undefined>, target: string): Promise<void> {
    const status = await answer;
    if (status === undefined) {
      throw new Refusal(502, `${called} did not answer as an HTTP proxy does: check the \`url\` of \`upstreamProxy\``);
    }
    if (status >= 200 && status < 300) return;
    if (status === 407) {
      const what = this.#proxy.username === undefined ? "asks for credentials: set" : "rejected its credentials: check";
      throw new Refusal(502, `${called} ${what} \`username\` and \`password\` of \`upstreamProxy\``);
    }
    const remedy =
      status >= 500
        ? "it may not reach the host"
        : "allow CONNECT to this host and port there, or add the host to `noProxy`";
    throw new Refusal(502, `${called} did not connect to ${target}: it answered with status ${status}; ${remedy}`);
  }
}

/** Reads the answer to CONNECT from the beginning of a connection, and leaves what follows. */
class ConnectAnswer {
  /** The option of `connect`: the answer first, then what follows as the reader wants it. */
  readonly onread: OnReadOpts;
  readonly #follows: OnReadOpts | undefined;
  readonly #status: Promise<number | undefined>;
  #settle: (status: number | undefined) => void = () => {};
  #bytes = Buffer.alloc(0);
  #done = false;

  /** @param follows - gets the bytes after the answer; by default, they stay in the stream. */
  constructor(follows: OnReadOpts | undefined) {
    this.#follows = follows;
    this.#status = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const first = Buffer.allocUnsafeSlow(maxAnswer);
    this.onread = {
      buffer: () => (this.#done && typeof follows?.buffer === "function" ? follows.buffer() : first),
      callback: (length, buffer) => {
        if (this.#done) return follows?.callback(length, buffer) ?? false;
        const rest = this.#take(Buffer.from(buffer.subarray(0, length)));
        return rest.length === 0 || (follows?.callback(rest.length, rest) ?? false);
      },
    };
  }

  /** Reads a stream that was not opened with `onread`. */
  readFrom(stream: Socket): void {
    const follows = this.#follows;
    // Not "data": who reads the stream next must find it neither flowing nor paused.
    const read = (): void => {
      for (let chunk: unknown = stream.read(); chunk instanceof Buffer; chunk = stream.read()) {
        const rest = this.#take(chunk);
        if (!this.#done) continue;
        stream.off("readable", read);
        if (rest.length > 0) stream.unshift(rest);
        if (follows) {
          stream.on("data", (more: Buffer) => void (follows.callback(more.length, more) || stream.pause()));
        }
        return;
      }
    };
    stream.on("readable", read);
  }

  /** The status; `undefined` if it is not an answer of HTTP, or too long, or if the connection ends before. */
  read(stream: Socket): Promise<number | undefined> {
    const gone = (): void => this.#settle(undefined);
    for (const event of ["end", "error", "close"]) stream.once(event, gone);
    if (stream.destroyed || stream.readableEnded) gone();
    return this.#status.finally(() => {
      for (const event of ["end", "error", "close"]) stream.off(event, gone);
    });
  }

  /** @returns what follows the answer. */
  #take(chunk: Buffer): Buffer {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const end = this.#bytes.indexOf("\r\n\r\n");
    const [begin, rest] = [this.#bytes.subarray(0, Math.max(0, end)), this.#bytes.subarray(end + 4)];
    if (end < 0 && this.#bytes.length < maxAnswer && couldBeAnswer(this.#bytes)) return Buffer.alloc(0);
    this.#done = true;
    this.#bytes = Buffer.alloc(0);
    const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)(?: |$)/.exec(begin.toString("latin1").split("\r\n")[0] ?? "") ?? [];
    this.#settle(status === undefined ? undefined : Number(status));
    return status === undefined ? Buffer.alloc(0) : rest;
  }
}

/** Whether bytes may begin an answer: a server of another kind may say something and wait. */
function couldBeAnswer(bytes: Buffer): boolean {
  const begin = "HTTP/1.";
  return begin.startsWith(bytes.toString("latin1", 0, Math.min(bytes.length, begin.length)));
}
