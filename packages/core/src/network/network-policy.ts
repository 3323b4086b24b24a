/**
 * What the code of an executor may talk to. `"none"`: nothing but its own loopback; `"open"`: whatever the place it runs
 * in can reach; else the hosts that are listed, through a proxy in this program (`@fenced/egress`).
 */
export type NetworkPolicy = "none" | "open" | AllowedNetwork;

/** A network policy that names the hosts the code may talk to. Everything else is refused, at once and with a reason. */
export interface AllowedNetwork {
  /**
   * Host names (`"api.example.com"`), all names below one (`"*.example.com"`, which is not `example.com` itself), every
   * name (`"*"`) and addresses (`"192.0.2.7"`, `"[2001:db8::7]:443"`), each with `:port` or for all ports. A loopback,
   * link-local, private or metadata address is refused, also as what a listed name resolves to, unless that address is
   * listed itself.
   */
  readonly allow: readonly string[];
  /** Headers that the proxy adds to requests, so that the code never sees them. Default: none. */
  readonly credentials?: readonly NetworkCredential[];
  /**
   * Gives the addresses of a name, in the order in which they are tried. Called once for each connection, for names that
   * are listed. Default: the system's look-up, `hosts` file included. Cannot be dumped.
   */
  readonly resolve?: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Called with each decision, as it is made. What it throws is ignored. Cannot be dumped. */
  readonly onRequest?: (decision: NetworkDecision) => void;
}

/**
 * A header that the proxy adds to each HTTPS request to a host. TLS ends at the proxy for that host alone, and begins
 * anew, verified, from the proxy to the host. The header is never added to plain HTTP.
 */
export interface NetworkCredential {
  /** A host name or an address, with or without a port, that `allow` covers. Default port: 443. */
  readonly host: string;
  /** The header's name, e.g. `"authorization"`. One of this name from the code is dropped. */
  readonly header: string;
  /** Gives the header's value; called for each request. What it throws reaches neither the code nor an event. */
  readonly value: () => string | Promise<string>;
  /** Certificates, as PEM, of the authority that signed the host's one. Default: those that Node trusts. */
  readonly ca?: string;
}

/** What became of one request of the code. */
export interface NetworkDecision {
  readonly allowed: boolean;
  /** `connect`: a tunnel, of which nothing is read; `https`: a request to a host with a credential. */
  readonly protocol: "http" | "https" | "connect" | "socks5";
  /** The name or address asked for, in its one canonical spelling; as it was written if it has none. */
  readonly host: string;
  readonly port: number;
  /** The address that is dialed first; absent if the request was refused. */
  readonly address?: string;
  /** The request's method, where it is read. */
  readonly method?: string;
  /** Why it was refused: the sentence that the code was given. */
  readonly reason?: string;
}

/** What pip, uv, npm, pnpm and yarn need in order to install packages. */
export const packageIndexes: readonly string[] = [
  "pypi.org:443",
  "files.pythonhosted.org:443",
  "registry.npmjs.org:443",
  "registry.yarnpkg.com:443",
];
