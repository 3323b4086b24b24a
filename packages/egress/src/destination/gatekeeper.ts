import type { OnReadOpts, Socket } from "node:net";
import type { AllowedNetwork, NetworkDecision } from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import {
  canonicalHost,
  isAddress,
  isRestricted,
  matchesHost,
  type ParsedRule,
  parseNetworkEntry,
  permitsRequest,
  unclearPath,
} from "@fenced/core/network";
import { ownKind, specialKind } from "./address-kind.ts";
import { DenyList } from "./deny-list.ts";
import { dialFirst } from "./dial.ts";
import { HostQuestions } from "./host-questions.ts";
import { errorCode, printable, Refusal } from "./refusal.ts";
import type { UpstreamRoute } from "./upstream-route.ts";

/** Settings of a gatekeeper. */
export interface GatekeeperOptions {
  readonly allow: AllowedNetwork["allow"];
  readonly deny: AllowedNetwork["deny"];
  readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
  readonly connectTimeoutMs: number;
  /** Where connections go out; by default, directly. */
  readonly upstream: UpstreamRoute | undefined;
  readonly onUnknownHost: AllowedNetwork["onUnknownHost"];
  /** Milliseconds for which a connection waits for its answer. */
  readonly answerMs: number;
  readonly onRequest: ((decision: NetworkDecision) => void) | undefined;
  /** Whether this proxy itself listens on the port. */
  readonly isOwn: (address: string, port: number) => boolean;
}

/** A request to reach a place. */
export interface Visit {
  readonly protocol: NetworkDecision["protocol"];
  readonly method?: string;
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
}

/** A name or an address in its canonical spelling, and a port. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Decides which connections are allowed, and dials them. */
export class Gatekeeper {
  readonly #listed: AllowList;
  /** What is denied, as it was when it was last asked for. */
  #denied: DenyList | undefined;
  readonly #options: GatekeeperOptions;
  readonly #questions: HostQuestions | undefined;

  constructor(options: GatekeeperOptions) {
    this.#options = options;
    this.#questions = options.onUnknownHost && new HostQuestions(options.onUnknownHost, options.answerMs);
    this.#listed = new AllowList(typeof options.allow === "function" ? [] : options.allow);
  }

  /** What is denied now. */
  get #denials(): DenyList {
    const { deny = [] } = this.#options;
    if (this.#denied && typeof deny !== "function") return this.#denied;
    try {
      const entries = typeof deny === "function" ? deny() : deny;
      if (this.#denied?.isOf(entries) !== true) this.#denied = new DenyList(entries);
      return this.#denied;
    } catch {
      throw notEvaluated();
    }
  }

  /** The hosts that are allowed now. */
  get #allowed(): AllowList {
    const { allow } = this.#options;
    if (typeof allow !== "function") return this.#listed;
    try {
      return new AllowList(allow());
    } catch {
      throw notEvaluated();
    }
  }

  /**
   * The requested place, if it is listed, or if `onUnknownHost` allows it. Reports only a refusal; `open` reports the outcome.
   *
   * @throws Refusal; the reason of the visit's signal.
   */
  async admit(host: string, port: number, visit: Visit): Promise<Place> {
    const canonical = canonicalHost(host);
    const place = { host: canonical ?? printable(host), port };
    const isAsked = this.#watched(place, visit, () => {
      if (canonical === undefined) throw new Refusal(400, `"${place.host}" is not a host name or an address`, true);
      const denial = this.#denials.problemWith(place);
      if (denial) throw denial;
      const problem = this.#allowed.problemWith(place);
      if (problem && !this.#isAskedAbout(place)) throw problem;
      return problem !== undefined;
    });
    if (isAsked) await this.#ask(place, visit);
    return place;
  }

  #isAskedAbout({ host }: Place): boolean {
    return this.#questions !== undefined && !(isAddress(host) && specialAddress(host) !== undefined);
  }

  async #ask(place: Place, visit: Visit): Promise<void> {
    try {
      await this.#questions?.admit(place, visit.signal);
    } catch (error) {
      this.#reportRefusal(place, visit, error);
      throw error;
    }
  }

  /** The rules for a place to which only some requests are allowed, so that they must be read; `undefined` for any other place. */
  rulesFor({ host, port }: Place): readonly ParsedRule[] | undefined {
    const rules = this.#allowed.rulesFor({ host, port });
    return rules.length > 0 && rules.every(isRestricted) ? rules : undefined;
  }

  /** True if the list has such rules now. A list that cannot be evaluated has none. */
  get hasRules(): boolean {
    try {
      return this.#allowed.hasRules;
    } catch {
      return false;
    }
  }

  /**
   * Checks a request to an admitted place. Reports only a refusal.
   *
   * @returns the rules for the place; none if all requests to it are allowed.
   * @param path - as it will be sent, with its query.
   * @param headers - names and values, in turns.
   * @throws Refusal
   */
  admitRequest(
    place: Place,
    visit: Visit & { readonly method: string },
    path: string,
    headers: readonly string[],
  ): readonly ParsedRule[] {
    return this.#watched(place, visit, () => {
      const rules = this.rulesFor(place);
      if (rules === undefined) return [];
      const [clean = ""] = path.split("?", 1);
      const what = `${printable(visit.method)} ${printable(clean)} of ${place.host}`;
      const unclear = rules.some(({ paths }) => paths) ? unclearPath(clean) : undefined;
      if (unclear !== undefined) {
        throw new Refusal(403, `${what} is not in this executor's network policy: its path ${unclear}`, true);
      }
      const other = headers.find((name, index) => index % 2 === 0 && overrides.test(name.replaceAll("_", "-")));
      if (other !== undefined) {
        const why = `the header ${printable(other)} may name another method or path`;
        throw new Refusal(403, `${what} is not in this executor's network policy: ${why}`, true);
      }
      if (rules.some((rule) => permitsRequest(rule, visit.method, clean))) return rules;
      throw new Refusal(403, `${what} is not in this executor's network policy`, true);
    });
  }

  /**
   * Connects to an admitted place. Looks its name up once, and dials the address that it checked. Only the name of a listed host goes to
   * an upstream proxy: code could choose any other one so that the proxy finds an address of its own network.
   *
   * @param onread - see `connect`. Default: the connection is read like any stream.
   * @throws Refusal
   */
  async open(place: Place, visit: Visit, onread?: OnReadOpts): Promise<Socket> {
    const signal = joinSignals(visit.signal, AbortSignal.timeout(this.#options.connectTimeoutMs));
    const upstream = this.#options.upstream?.leadsTo(place) === true ? this.#options.upstream : undefined;
    if (upstream && this.#watched(place, visit, () => this.#allowed.names(place) && this.#denials.permitsName(place))) {
      this.#report({ allowed: true, ...about(visit), ...place });
      return upstream.open(place, { signal, onread });
    }
    const found = await this.#lookUp(place, signal);
    const addresses = this.#watched(place, visit, () => this.#dialable(place, found));
    this.#report({ allowed: true, ...about(visit), ...place, address: addresses[0] ?? place.host });
    const [first = ""] = addresses;
    if (upstream && specialAddress(first) === undefined) {
      return upstream.open({ ...place, host: first }, { signal, onread });
    }
    return dialFirst(addresses, place.port, { called: place.host, signal, onread });
  }

  async #lookUp({ host }: Place, signal: AbortSignal): Promise<readonly string[]> {
    if (isAddress(host)) return [host];
    try {
      return await untilAborted(this.#options.resolve(host, signal), signal);
    } catch (error) {
      throw new Refusal(502, `${host} could not be resolved: ${signal.aborted ? "timed out" : errorCode(error)}`);
    }
  }

  #dialable({ host, port }: Place, found: readonly string[]): string[] {
    const addresses = [...new Set(found.map((address) => canonicalHost(address)))].filter(
      (address) => address !== undefined && isAddress(address),
    );
    const kinds: string[] = [];
    const [allowed, denials] = [this.#allowed, this.#denials];
    const refusedKind = (address: string): string | undefined =>
      denials.deniesAddress({ host, port }, address) ? "a denied address" : allowed.refusedKind(address, port);
    const dialable = addresses.flatMap((address = "") => {
      const kind = this.#options.isOwn(address, port) ? "this proxy" : refusedKind(address);
      if (kind !== undefined) kinds.push(kind);
      return kind === undefined ? [address] : [];
    });
    if (dialable.length > 0) return dialable.slice(0, mostAddresses);
    if (kinds[0] === undefined) throw new Refusal(502, `${host} could not be resolved: it has no address`);
    const how = isAddress(host) ? "it is" : "it resolves to";
    throw new Refusal(403, `${host} is not in this executor's network policy: ${how} ${kinds[0]}`, true);
  }

  /** Reports refusals of the policy, and rethrows them. */
  #watched<Result>(place: Place, visit: Visit, check: () => Result): Result {
    try {
      return check();
    } catch (error) {
      this.#reportRefusal(place, visit, error);
      throw error;
    }
  }

  #reportRefusal(place: Place, visit: Visit, error: unknown): void {
    if (!(error instanceof Refusal && error.denied)) return;
    this.#report({ allowed: false, ...about(visit), ...place, reason: error.message });
  }

  #report(decision: NetworkDecision): void {
    try {
      this.#options.onRequest?.(decision);
    } catch {
      // A listener must not break a connection.
    }
  }
}

/** The hosts that clients may reach. */
class AllowList {
  readonly #patterns: readonly ParsedRule[];

  /** @param entries - invalid ones allow nothing. */
  constructor(entries: readonly unknown[]) {
    this.#patterns = entries.map(parseNetworkEntry).filter((pattern) => "host" in pattern);
  }

  get hasRules(): boolean {
    return this.#patterns.some(isRestricted);
  }

  rulesFor({ host, port }: Place): ParsedRule[] {
    return this.#patterns.filter((pattern) => matchesHost(pattern, host, port));
  }

  /** Why no entry matches the place; `undefined` if one does. */
  problemWith({ host, port }: Place): Refusal | undefined {
    if (this.#patterns.some((pattern) => matchesHost(pattern, host, port))) return undefined;
    const named = this.#patterns.some(
      (pattern) => pattern.port !== undefined && matchesHost(pattern, host, pattern.port),
    );
    const what = named ? `port ${port} of ${host}` : host;
    return new Refusal(403, `${what} is not in this executor's network policy`, true);
  }

  /**
   * Whether an entry names the host, or a domain above it of which not everybody can get a part. `localhost` is this machine
   * everywhere (RFC 6761).
   */
  names({ host, port }: Place): boolean {
    if (isAddress(host) || /(?:^|\.)localhost$/.test(host)) return false;
    return this.#patterns.some((pattern) => !isOpenToAll(pattern) && matchesHost(pattern, host, port));
  }

  /** Why an address must not be dialed, as text after "is". */
  refusedKind(address: string, port: number): string | undefined {
    const kind = specialAddress(address);
    if (kind === undefined) return undefined;
    return this.#patterns.some((pattern) => !pattern.below && matchesHost(pattern, address, port)) ? undefined : kind;
  }
}

/** Top-level domains that nobody can register a name in. */
const privateDomain = /^(?:internal|corp|home|mail|intranet|private|lan|local|localdomain|test|example|invalid)$/;

/** Whether an entry allows names that code could register: `*`, or all of a top-level domain, such as `*.com`. */
function isOpenToAll({ host, below }: ParsedRule): boolean {
  return host === "" || (below && !host.includes(".") && !privateDomain.test(host));
}

/**
 * Headers by which some servers and frameworks take another method or path than the request's own, or one more, as WebDAV and
 * stores of objects do to copy. With `_` for `-`, they are the same variable of a CGI, WSGI or Rack application.
 */
const overrides =
  /^(?:x-http-method(?:-override)?|x-method-override|x-original-(?:method|url|uri)|x-rewrite-url|x-forwarded-(?:method|path|prefix|uri)|destination|x-(?:amz|goog|ms|oss|cos|obs)-(?:copy|rename)-source)$/i;

/** What kind of address it is that code must not reach unless it is listed itself, as text after "is". */
function specialAddress(address: string): string | undefined {
  return specialKind(address) ?? ownKind(address);
}

/** Addresses to try per name: dialing a name with thousands would take hours. */
const mostAddresses = 8;

function notEvaluated(): Refusal {
  return new Refusal(403, "this executor's network policy could not be evaluated", true);
}

function about({ protocol, method }: Visit): Pick<NetworkDecision, "protocol" | "method"> {
  return { protocol, ...(method === undefined ? {} : { method }) };
}
