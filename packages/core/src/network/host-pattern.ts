/** A parsed entry of a network policy's list. */
export interface HostPattern {
  /**
   * The name or address in canonical form; for `"*.example.com"` the part after the star, for `"*"` an empty string.
   */
  readonly host: string;
  /** Matches the names below `host`, but not `host` itself. */
  readonly below: boolean;
  /** `undefined`: every port. */
  readonly port: number | undefined;
}

/**
 * The canonical form of a host name or address, for comparisons: lower case, without a trailing dot, `xn--` for other
 * alphabets, IPv4 as four decimal numbers however it was written (`0x7f.1`, `2130706433`, `::ffff:127.0.0.1`), IPv6
 * compressed and without brackets.
 *
 * @returns `undefined` for anything else, including an address with a zone (`fe80::1%eth0`).
 */
export function canonicalHost(text: string): string | undefined {
  const bare = /^\[[^[\]]*\]$/.test(text) ? text.slice(1, -1) : text;
  if (bare.includes(":")) return canonicalIpv6(bare);
  // A URL would end at the first of these, or decode it. The length is limited before anything decodes the name.
  if (bare !== text || bare.length > 1000 || /[\s\p{Cc}/?#@\\%:[\]<>^|]/u.test(bare)) return undefined;
  const host = hostOf(bare)?.replace(/\.$/, "");
  if (host === undefined || host.length > 253) return undefined;
  return host.split(".").every((label) => /^[a-z0-9_-]{1,63}$/.test(label)) ? host : undefined;
}

function canonicalIpv6(text: string): string | undefined {
  if (!/^[\da-f:.]{2,45}$/i.test(text)) return undefined;
  const host = hostOf(`[${text}]`)?.slice(1, -1);
  const mapped = host === undefined ? undefined : /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(host);
  if (!mapped) return host;
  const [high, low] = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function hostOf(host: string): string | undefined {
  const url = `http://${host}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** True if a host in canonical form is an address rather than a name. */
export function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

/**
 * Parses an entry of a list of hosts; `problem` completes a sentence that begins with the entry and says what it must
 * be.
 */
export function parseHostPattern(entry: string): HostPattern | { readonly problem: string } {
  if (entry.includes("/")) {
    return { problem: "must be a host name or an address, without `https://` or a path" };
  }
  const [, text = "", digits] = /^(\[.*\]|[^:]*)(?::(\d{1,5}))?$/s.exec(withPort(entry)) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return { problem: "must have a port from 1 to 65535" };
  if (text === "*") return { host: "", below: true, port };
  const below = text.startsWith("*.");
  const host = canonicalHost(below ? text.slice(2) : text);
  if (host === undefined || (below && isAddress(host))) {
    return { problem: 'must be a host name, "*.example.com", "*" or an address, with or without ":port"' };
  }
  return { host, below, port };
}

/** Adds missing brackets to an IPv6 address: `::1:80` is an address without a port. */
function withPort(entry: string): string {
  return !entry.startsWith("[") && entry.split(":").length > 2 ? `[${entry}]` : entry;
}

/** True if an entry covers this host, in canonical form, at this port. */
export function matchesHost(pattern: HostPattern, host: string, port: number): boolean {
  if (pattern.port !== undefined && pattern.port !== port) return false;
  if (!pattern.below) return pattern.host === host;
  return pattern.host === "" || (host.endsWith(`.${pattern.host}`) && !isAddress(host));
}
