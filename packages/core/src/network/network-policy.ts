import type { NetworkCredential } from "./network-credential.ts";
import type { UpstreamProxy } from "./upstream-proxy.ts";

/**
 * What an executor's code may connect to. `"none"`: only its own loopback; `"open"`: whatever its environment can
 * reach; otherwise only the listed hosts, through a proxy in this program (`@fenced/egress`).
 */
export type NetworkPolicy = "none" | "open" | AllowedNetwork;

/** A network policy that lists the hosts the code may connect to. Everything else is refused at once, with a reason. */
export interface AllowedNetwork {
  /**
   * Host names (`"api.example.com"`), all names below one (`"*.example.com"`, which does not match `example.com`
   * itself), every name (`"*"`) and addresses (`"192.0.2.7"`, `"[2001:db8::7]:443"`), each with `:port` or for all
   * ports. Loopback, link-local, private and metadata addresses are refused, even if a listed name resolves to one,
   * unless the address itself is listed. A rule allows only some requests to its hosts. What one entry allows, no other takes
   * away: list a host either by itself or with rules.
   *
   * A function is asked for each new connection, so that the policy can change while code runs. It must return at once;
   * invalid entries allow nothing. A policy with a function cannot be dumped.
   */
  readonly allow: readonly (string | NetworkRule)[] | (() => readonly (string | NetworkRule)[]);
  /**
   * What is refused although `allow` covers it, by the addresses to which connections go: single ones (`"192.0.2.7"`) and ranges
   * (`"192.0.2.0/24"`, `"::/0"`), whatever name leads there. Each entry counts by itself: one's exceptions are no other's. Default:
   * nothing.
   *
   * A function is asked for each new connection, as that of `allow`; if it throws or returns an invalid entry, everything is refused. A
   * policy with a function cannot be dumped.
   *
   * @example
   * { allow: ["*"], deny: [{ addresses: ["0.0.0.0/0", "::/0"], except: ["*.example.com", "192.0.2.0/24"] }] }
   */
  readonly deny?: readonly (string | NetworkDenial)[] | (() => readonly (string | NetworkDenial)[]) | undefined;
  /** Secrets that the proxy adds to requests, or puts in place of placeholders, so that the code never has them. Default: none. */
  readonly credentials?: readonly NetworkCredential[] | undefined;
  /**
   * The HTTP proxy through which connections go out, in networks that have no other way. It looks up the names that `allow` lists, also
   * below a star; names that only `"*"` or `onUnknownHost` allows are looked up here, and it gets the address that was checked. With a
   * password, the policy cannot be dumped. Default: hosts are reached directly, whatever the environment says.
   */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /**
   * Resolves a name to addresses, in the order in which to try them. Called once for each connection to a listed name.
   * Default: the `hosts` file, then the name servers of Node's `dns` module, then the system. Cannot be dumped.
   */
  readonly resolve?: ((host: string, signal: AbortSignal) => Promise<readonly string[]>) | undefined;
  /**
   * Asked about a host that `allow` does not cover, such as by showing it to a person, while the connection waits, for five minutes. `true` allows the host
   * at this port until the session ends; anything else refuses it for as long. Asked once for each host and port, also for several
   * connections at the same time, and for at most 16 at a time; further ones are refused meanwhile. If it rejects, the connection is
   * refused, and the next one asks again. Never asked about loopback, link-local, private and metadata addresses, and an allowed
   * name that resolves to one is refused. A sandbox's code chooses the names: they may carry data. Default: such hosts are refused.
   * Cannot be dumped.
   *
   * @param signal - aborted when no connection waits for the answer any longer. It still counts for later ones: reject,
   * and do not return `false`, if you withdraw the question.
   *
   * @example
   * onUnknownHost: async ({ host, port }) => (await ask(`May the code connect to ${host}:${port}?`)) === "yes",
   */
  readonly onUnknownHost?: ((host: UnknownHost, signal: AbortSignal) => boolean | Promise<boolean>) | undefined;
  /** Called with each decision as it is made. Errors that it throws are ignored. Cannot be dumped. */
  readonly onRequest?: ((decision: NetworkDecision) => void) | undefined;
}

/** A host that code wants to connect to, and that its policy does not list. */
export interface UnknownHost {
  /** The name or address in canonical form: lower case, `xn--` for other alphabets; no control characters. */
  readonly host: string;
  readonly port: number;
}

/**
 * Hosts to which only some requests are allowed. For these hosts, the proxy reads requests: it terminates TLS and opens a new,
 * verified TLS connection to the host, so only HTTP/1.1 works there. Executors make programs trust the proxy's authority; if `allow`
 * is a function, only if it returned a rule when the place was opened.
 *
 * @example
 * { host: "api.github.com:443", methods: ["GET"], paths: ["/repos/acme/**"] }
 */
export interface NetworkRule {
  /** As an entry of `AllowedNetwork.allow`. */
  readonly host: string;
  /** Methods, in capital letters. `"GET"` does not include `"HEAD"`. Default: all. */
  readonly methods?: readonly string[] | undefined;
  /**
   * Paths, part by part: `*` is any text within a part, and `**` any number of parts, also none. The query does not matter. A
   * request is refused if hosts may read its path in several ways (`/a//b`, `/a/%2e%2e/b`), or if a header names another method or
   * path. Default: all.
   */
  readonly paths?: readonly string[] | undefined;
  /**
   * PEM certificates of the authority that signed the host's certificate, if Node does not trust it. Only with `methods` or `paths`.
   * Default: none.
   */
  readonly ca?: string | undefined;
}

/** Addresses that are refused, with exceptions. */
export interface NetworkDenial {
  /** Addresses and ranges of them. IPv6 addresses that contain one of IPv4 (`::ffff:192.0.2.7`, `64:ff9b::/96`) are that address. */
  readonly addresses: readonly string[];
  /**
   * What stays allowed, as far as `allow` covers it: addresses and ranges, and names as in `allow`, at whatever address. `"*"` is every
   * name, and not an address that code connects to without one. Default: nothing.
   */
  readonly except?: readonly string[] | undefined;
}

/** The decision about one request of the code. */
export interface NetworkDecision {
  readonly allowed: boolean;
  /** `connect`: a tunnel whose content is not read; `https`: a request to a host with a credential or a rule. */
  readonly protocol: "http" | "https" | "connect" | "socks5";
  /** The requested name or address in canonical form, or unchanged if it has none. */
  readonly host: string;
  readonly port: number;
  /** The address that is dialed first; absent if the request was refused, or if an upstream proxy looks the name up. */
  readonly address?: string;
  /** The request's method, if the proxy reads it. */
  readonly method?: string;
  /** Why it was refused, as the code was told. */
  readonly reason?: string;
}

/** The hosts that pip, uv, npm, pnpm and yarn need to install packages. */
export const packageIndexes: readonly string[] = [
  "pypi.org:443",
  "files.pythonhosted.org:443",
  "registry.npmjs.org:443",
  "registry.yarnpkg.com:443",
];
