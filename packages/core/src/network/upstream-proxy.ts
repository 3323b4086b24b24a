/**
 * A company's HTTP proxy, through which the connections that a network policy allows go out. Only the proxy in this program
 * talks to it; code never sees its address or credentials.
 *
 * @example
 * { url: "http://proxy.corp.example:3128", username: "builder", password: () => proxyPassword, noProxy: ["*.corp.example"] }
 */
export interface UpstreamProxy {
  /**
   * `http://host:port` or `https://host:port`, without a user name and password. It must allow CONNECT to the hosts and ports, for plain
   * HTTP, too. Default ports: 80 and 443.
   */
  readonly url: string;
  /** The user name for Basic authentication, with `password`: printable ASCII without `:`. Default: no authentication. */
  readonly username?: string | undefined;
  /**
   * Returns the password: 1 to 8192 printable ASCII characters. Called for each connection. What it throws reaches neither the code nor
   * an event.
   */
  readonly password?: (() => string | Promise<string>) | undefined;
  /** PEM certificates of the authority that signed the certificate of an `https://` proxy, if Node does not trust it. Default: none. */
  readonly ca?: string | undefined;
  /**
   * Hosts to connect to without the proxy, written as in `allow`. Addresses of this machine and of private networks, which `allow` must
   * list, are always reached without it. Default: none.
   */
  readonly noProxy?: readonly string[] | undefined;
}
