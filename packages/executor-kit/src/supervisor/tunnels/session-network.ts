import type { Duplex } from "node:stream";
import { rootCertificates } from "node:tls";
import type { AllowedNetwork, NetworkDecision, NetworkPolicy, RunUsage } from "@fenced/core";
import { distinctRefusals } from "../../run/run-result.ts";
import type { Supervisor } from "../supervisor.ts";
import type { NetworkEntrance } from "./tunnels.ts";

/** What a proxy relayed: bytes received from hosts, and sent to them. */
export type NetworkTraffic = Required<Pick<RunUsage, (typeof trafficFigures)[number]>>;

/** The figures of `RunUsage` that say what the network carried. */
export const trafficFigures: readonly ["receivedBytes", "sentBytes"] = ["receivedBytes", "sentBytes"];

/** The part of a proxy that a session uses. `EgressProxy` of `@fenced/egress` implements it. */
export interface NetworkProxy {
  /** Takes over a program's connection. */
  handle(connection: Duplex, options?: { readonly releasesWrites?: boolean }): void;
  /** The PEM certificate of the proxy's own authority; `undefined` if it has none. */
  certificate(): Promise<string | undefined>;
  /** Bytes that it has relayed so far. */
  readonly traffic: NetworkTraffic;
  close(): Promise<void>;
}

/** Creates a proxy. The class `EgressProxy` is passed in, so that only executors with network policies depend on it. */
export type NetworkProxyClass = new (options: AllowedNetwork & { readonly maxConnections: number }) => NetworkProxy;

/**
 * Maximum number of simultaneous connections of a session; lower than what a supervisor can carry, so that a program
 * that exceeds it is told why.
 */
const maxConnections = 200;
/** Maximum number of hosts to collect for a block: a wildcard allows code to name any number. */
const mostReached = 1000;

/**
 * A session's proxy in this process, for places without a network: programs there reach it through their supervisor.
 * Created when it is first needed, because most sessions make no requests.
 */
export class SessionNetwork {
  readonly #make: () => NetworkProxy;
  #proxy: NetworkProxy | undefined;
  #closed = false;
  /** Each running block has one, because the proxy does not know which block made a request. */
  readonly #watchers = new Set<(decision: NetworkDecision) => void>();
  /** The same for what was allowed. */
  readonly #reachWatchers = new Set<(decision: NetworkDecision) => void>();
  /** What was refused before the first of them, as much as a result keeps. */
  #unwatched: readonly NetworkDecision[] = [];
  #wasWatched = false;

  constructor(policy: AllowedNetwork, Proxy: NetworkProxyClass) {
    this.#make = () =>
      new Proxy({
        ...policy,
        maxConnections,
        onRequest: (decision) => {
          if (!decision.allowed) this.#refused(decision);
          else for (const reached of this.#reachWatchers) reached(decision);
          policy.onRequest?.(decision);
        },
      });
  }

  /** The network of a session with this policy; `undefined` if the policy lists no hosts, and so needs no proxy. */
  static of(policy: NetworkPolicy | undefined, Proxy: NetworkProxyClass): SessionNetwork | undefined {
    return typeof policy === "object" ? new SessionNetwork(policy, Proxy) : undefined;
  }

  /**
   * Gives the programs of a place access to the proxy. Call it for each new supervisor.
   *
   * @returns the variables that tell programs where it is.
   * @throws BackendUnavailableError if the supervisor cannot listen on the place's loopback.
   */
  async enter(supervisor: Pick<Supervisor, "openNetwork">): Promise<Readonly<Record<string, string>>> {
    const take = (connection: Duplex): void => {
      if (this.#closed) connection.destroy();
      else (this.#proxy ??= this.#make()).handle(connection, { releasesWrites: true });
    };
    return networkVariables(await supervisor.openNetwork(take, await this.#authorities()));
  }

  /** Starts collecting refused requests; returns a function that returns them. */
  collect(): () => readonly NetworkDecision[] {
    const refusals: NetworkDecision[] = [];
    const leave = this.watchRefusals((decision) => refusals.push(decision));
    return () => {
      leave();
      return refusals;
    };
  }

  /** Starts collecting the hosts that are reached; returns a function that returns them, each host and port once. */
  collectReached(): () => readonly NetworkDecision[] {
    const reached = new Map<string, NetworkDecision>();
    const watcher = (decision: NetworkDecision): void => {
      if (reached.size < mostReached) reached.set(`${decision.host} ${decision.port}`, decision);
    };
    this.#reachWatchers.add(watcher);
    return () => {
      this.#reachWatchers.delete(watcher);
      return [...reached.values()];
    };
  }

  /** Starts counting what is relayed; returns a function that returns it. */
  countTraffic(): () => NetworkTraffic {
    const before = this.#traffic;
    return () => {
      const { receivedBytes, sentBytes } = this.#traffic;
      return { receivedBytes: receivedBytes - before.receivedBytes, sentBytes: sentBytes - before.sentBytes };
    };
  }

  /**
   * Calls a function for each refused request that a result would keep, before its program learns of it.
   *
   * @param wasRunning - the programs were there before this network, so that what was refused before anything watched
   *   is reported first. Default: false.
   * @returns what ends that.
   */
  watchRefusals(refused: (decision: NetworkDecision) => void, wasRunning = false): () => void {
    let seen: readonly NetworkDecision[] = [];
    const watcher = (decision: NetworkDecision): void => {
      const distinct = distinctRefusals([...seen, decision]);
      if (distinct.length > seen.length) refused(decision);
      seen = distinct;
    };
    this.#wasWatched = true;
    this.#watchers.add(watcher);
    if (wasRunning) for (const decision of this.#unwatched) watcher(decision);
    return () => this.#watchers.delete(watcher);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#proxy?.close();
  }

  get #traffic(): NetworkTraffic {
    return this.#proxy?.traffic ?? { receivedBytes: 0, sentBytes: 0 };
  }

  #refused(decision: NetworkDecision): void {
    if (!this.#wasWatched) this.#unwatched = distinctRefusals([...this.#unwatched, decision]);
    for (const refused of this.#watchers) refused(decision);
  }

  /** The proxy's own authority, if it terminates TLS for any host, and the public authorities, which the place may lack. */
  async #authorities(): Promise<string | undefined> {
    const own = await (this.#proxy ??= this.#make()).certificate();
    return own === undefined ? undefined : [own, ...rootCertificates].join("\n");
  }
}

/**
 * The variables that tell programs where a proxy is on the loopback interface, and make them trust it where it
 * terminates TLS. `ALL_PROXY` is also an HTTP address, because clients that need an extra package for SOCKS fail on a
 * SOCKS address.
 */
export function networkVariables({ port, authorities }: NetworkEntrance): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const proxies = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: "localhost,127.0.0.1,::1" };
  const names = authorities === undefined ? [] : authorityNames;
  return {
    ...proxies,
    ...Object.fromEntries(Object.entries(proxies).map(([name, value]) => [name.toLowerCase(), value])),
    NODE_USE_ENV_PROXY: "1",
    ...Object.fromEntries(names.map((name) => [name, authorities ?? ""])),
  };
}

/** For OpenSSL and uv; requests; curl; pip; Node and npm; git. */
const authorityNames: readonly string[] = [
  "SSL_CERT_FILE",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE",
  "PIP_CERT",
  "NODE_EXTRA_CA_CERTS",
  "GIT_SSL_CAINFO",
];
