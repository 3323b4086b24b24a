import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { Duplex } from "node:stream";
import { isMainThread } from "node:worker_threads";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { checkOptions, type GivenOptions } from "@fenced/core/options";
import { CredentialDoor } from "./credentials/credential-door.ts";
import { Gatekeeper } from "./destination/gatekeeper.ts";
import { Refusal } from "./destination/refusal.ts";
import { resolveHost } from "./destination/resolve-host.ts";
import { type RelayedBytes, Traffic } from "./destination/traffic.ts";
import { UpstreamRoute } from "./destination/upstream-route.ts";
import { Download, LargeBuffers } from "./download.ts";
import { egressProxyOptions, type EgressProxyOptions } from "./egress-proxy-options.ts";
import { refuseStream } from "./http/answer.ts";
import { HttpDoor } from "./http/http-door.ts";
import { enterSocks } from "./socks-door.ts";
import { joinStreams } from "./tunnel.ts";
import { Visitor } from "./visitor.ts";

/** Properties of a connection that the proxy takes over. */
export interface ConnectionOptions {
  /**
   * True if the stream no longer uses a chunk once its write has called back, which many streams do not promise. Large downloads
   * then reuse memory. Default: false.
   */
  readonly releasesWrites?: boolean;
}

/** Where to listen. */
export interface ListenOptions {
  /** A port of 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined;
  /** The path of a Unix socket to create instead of a port; only this user may connect to it. */
  readonly path?: string | undefined;
}

/** Where a proxy listens. */
export interface ListeningAddress {
  /**
   * For `HTTP_PROXY` and the like: `http://fenced:PASSWORD@127.0.0.1:PORT`. Empty for a Unix socket. The password keeps
   * other users of this machine from using the proxy, and its credentials.
   */
  readonly url: string;
  /** Like `url`, for SOCKS5; the proxy looks up names: `socks5h://…`. */
  readonly socksUrl: string;
  /** 0 for a Unix socket. */
  readonly port: number;
}

/**
 * A forward proxy that lets its clients talk only to the hosts that you list. It speaks HTTP (CONNECT and absolute
 * URLs) and SOCKS5 on any connection, and runs in this process.
 *
 * @example
 * await using proxy = new EgressProxy({ allow: [...packageIndexes, "api.example.com"] });
 * const { url } = await proxy.listen();
 * spawn("pip", ["install", "requests"], { env: { ...process.env, HTTPS_PROXY: url } });
 */
export class EgressProxy implements AsyncDisposable {
  readonly #settings: Required<
    GivenOptions<Pick<EgressProxyOptions, "maxConnections" | "headTimeoutMs" | "idleTimeoutMs">>
  >;
  readonly #gatekeeper: Gatekeeper;
  readonly #http: HttpDoor;
  readonly #secrets: CredentialDoor;
  readonly #traffic = new Traffic();
  readonly #largeBuffers = new LargeBuffers();
  readonly #visitors = new Set<Visitor>();
  readonly #servers = new Set<Server>();
  readonly #ports = new Set<number>();
  #closed = false;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: EgressProxyOptions) {
    const checked = checkOptions(egressProxyOptions, options, "EgressProxy");
    const {
      allow,
      deny,
      credentials = [],
      upstreamProxy,
      onUnknownHost,
      onRequest,
      resolve = resolveHost,
      connectTimeoutMs = 15_000,
    } = checked;
    const { maxConnections = 500, headTimeoutMs = 15_000, idleTimeoutMs = 300_000 } = checked;
    this.#settings = { maxConnections, headTimeoutMs, idleTimeoutMs };
    // Any loopback address counts: a listener on 127.0.0.1 may answer for others.
    const isOwn = (address: string, port: number): boolean =>
      this.#ports.has(port) && /^(?:127\.|0\.|::1?$)/.test(address);
    this.#gatekeeper = new Gatekeeper({
      allow,
      deny,
      resolve,
      connectTimeoutMs,
      upstream: upstreamProxy && new UpstreamRoute(upstreamProxy, { resolve, connectTimeoutMs }),
      onUnknownHost,
      answerMs: idleTimeoutMs,
      onRequest,
      isOwn,
    });
    this.#secrets = new CredentialDoor({
      gatekeeper: this.#gatekeeper,
      traffic: this.#traffic,
      credentials,
      headTimeoutMs,
      idleTimeoutMs,
      connectTimeoutMs,
    });
    this.#http = new HttpDoor({
      gatekeeper: this.#gatekeeper,
      traffic: this.#traffic,
      idleTimeoutMs,
      headTimeoutMs,
      tunnel: (...request) => this.#tunnel("connect", ...request),
    });
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#visitors.size;
  }

  /**
   * What it has relayed so far: bytes received from hosts and sent to them, as they are on its connections. What it encrypts itself,
   * because a host has credentials or rules, counts without encryption when it is sent.
   */
  get traffic(): RelayedBytes {
    return this.#traffic.total;
  }

  /**
   * Takes over a connection of any kind: a socket, an inherited descriptor, a stream from a container. Its client needs
   * no password.
   */
  handle(connection: Duplex, { releasesWrites = false }: ConnectionOptions = {}): void {
    if (releasesWrites) this.#largeBuffers.releasedBy.add(connection);
    this.#enter(connection, undefined);
  }

  /**
   * The certificate, as PEM, of the authority that signs for the hosts with credentials and rules; created for this
   * proxy, and only in memory. Clients of such a host must trust it. `undefined` if there are none; a function as `allow` is asked.
   */
  certificate(): Promise<string | undefined> {
    return this.#secrets.certificate();
  }

  /**
   * Listens on a port of 127.0.0.1, or on a Unix socket.
   *
   * @throws BackendUnavailableError if the port or the path is taken.
   * @throws ExecutorStoppedError after `close()`.
   */
  async listen({ port = 0, path }: ListenOptions = {}): Promise<ListeningAddress> {
    if (this.#closed) throw new ExecutorStoppedError("The proxy is closed", { remedy: "Create a new EgressProxy." });
    const secret = path === undefined ? randomBytes(18).toString("base64url") : undefined;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#enter(socket, secret));
    const where = path === undefined ? { host: "127.0.0.1", port } : { path };
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) =>
        reject(
          new BackendUnavailableError(`The proxy could not listen: ${cause.message}`, {
            remedy: "Choose another port or path, or leave it out for a free port.",
            cause,
          }),
        ),
      );
      if (path === undefined) server.listen(where, resolve);
      else listenPrivately(server, path, resolve);
    });
    this.#servers.add(server);
    const address = server.address();
    if (secret === undefined || typeof address !== "object" || address === null) {
      return { url: "", socksUrl: "", port: 0 };
    }
    this.#ports.add(address.port);
    const place = `fenced:${secret}@127.0.0.1:${address.port}`;
    return { url: `http://${place}`, socksUrl: `socks5h://${place}`, port: address.port };
  }

  /** Ends all connections at once, and stops listening. */
  async close(): Promise<void> {
    this.#closed = true;
    const closing = [...this.#servers].map((server) => once(server, "close"));
    for (const server of this.#servers) server.close();
    this.#servers.clear();
    for (const { stream } of this.#visitors) stream.destroy();
    await Promise.all(closing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #enter(stream: Duplex, secret: string | undefined): void {
    if (this.#closed) return void stream.destroy();
    const visitor = new Visitor(stream, secret, this.#settings.headTimeoutMs);
    const { maxConnections } = this.#settings;
    if (this.#visitors.size >= maxConnections) {
      refuseStream(stream, new Refusal(503, `too many connections: the limit is ${maxConnections}`));
      return;
    }
    this.#visitors.add(visitor);
    stream.once("close", () => this.#visitors.delete(visitor));
    stream.once("readable", () => this.#listenTo(visitor));
  }

  /** Distinguishes SOCKS from HTTP by the first byte. */
  #listenTo(visitor: Visitor): void {
    const { stream } = visitor;
    const first: unknown = stream.read(1);
    if (!(first instanceof Buffer)) return void stream.destroy();
    stream.unshift(first);
    if (first[0] === 5) void enterSocks(visitor, (...request) => this.#tunnel("socks5", ...request));
    else this.#http.enter(visitor);
  }

  async #tunnel(
    protocol: "connect" | "socks5",
    visitor: Visitor,
    host: string,
    port: number,
    established: () => void,
  ): Promise<void> {
    const visit = { protocol, signal: visitor.signal };
    const place = await this.#gatekeeper.admit(host, port, visit);
    if (this.#secrets.reads(place)) {
      established();
      await this.#secrets.enter(visitor, place);
      return;
    }
    const download = new Download(this.#largeBuffers);
    const upstream = await this.#gatekeeper.open(place, visit, download.onread);
    this.#traffic.follow(upstream);
    if (visitor.stream.destroyed) return void upstream.destroy();
    established();
    joinStreams(visitor.stream, upstream, download, this.#settings.idleTimeoutMs);
  }
}

/**
 * Creates a Unix socket that only this user may connect to, from its first moment on: Node creates and opens it within
 * this call, so nothing else of this program sees the changed mask.
 */
function listenPrivately(server: Server, path: string, listening: () => void): void {
  const mask = isMainThread ? process.umask(0o177) : undefined;
  try {
    server.listen({ path }, listening);
    // Worker threads have no mask of their own.
    if (mask === undefined && existsSync(path)) chmodSync(path, 0o600);
  } finally {
    if (mask !== undefined) process.umask(mask);
  }
}
