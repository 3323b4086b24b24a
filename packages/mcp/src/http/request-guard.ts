import type { Refusal } from "./refuse.ts";

/** Checks host and origin of each request, which stops DNS rebinding and pages of other sites. */
export class RequestGuard {
  readonly #names: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  constructor({
    allowedHosts = [],
    allowedOrigins = [],
  }: {
    readonly allowedHosts?: readonly string[] | undefined;
    readonly allowedOrigins?: readonly string[] | undefined;
  }) {
    this.#names = new Set(["localhost", "127.0.0.1", "[::1]", ...allowedHosts].map(hostnameOf));
    this.#origins = new Set(allowedOrigins);
  }

  /** @returns `undefined` if the request may pass. */
  check({ headers, url }: Request): Refusal | undefined {
    // A request that did not come over a network has no such header.
    if (!this.#isOurs(`http://${headers.get("host") ?? new URL(url).host}`)) {
      return { status: 403, message: "Host not allowed; add it to allowedHosts, or with --allow-host." };
    }
    const origin = headers.get("origin");
    if (origin !== null && !this.#origins.has(origin) && !this.#isOurs(origin)) {
      return { status: 403, message: "Origin not allowed; only pages of allowed hosts may call this server." };
    }
    return undefined;
  }

  #isOurs(url: string): boolean {
    if (!URL.canParse(url)) return false;
    const { hostname, username, password } = new URL(url);
    return username + password === "" && this.#names.has(hostname);
  }
}

/** A host name as `URL` writes it, for comparison: lower case, short IPv6 in brackets, Punycode, no port. */
function hostnameOf(name: string): string {
  const url = `http://${/^[^[].*:.*:/.test(name) ? `[${name}]` : name}`;
  return URL.canParse(url) ? new URL(url).hostname : name.toLowerCase();
}
