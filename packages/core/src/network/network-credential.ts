/**
 * A secret that the proxy puts into HTTPS requests to a host, so that the code never has it. For that host only, the proxy terminates
 * TLS and opens a new, verified TLS connection to the host. A secret is never sent over plain HTTP.
 */
export type NetworkCredential = HeaderCredential | PlaceholderCredential;

/** A header that the proxy adds to each HTTPS request to a host. */
export interface HeaderCredential extends CredentialSource {
  /** The header's name, e.g. `"authorization"`. A header of this name that the code sends is dropped. */
  readonly header: string;
  readonly placeholder?: undefined;
}

/**
 * A text that the code has in place of a secret, for example in a variable of its environment. In HTTPS requests to the host, the
 * proxy replaces it by the value; in the host's answers, it replaces the value by the text again where it can.
 *
 * @example
 * { host: "api.stripe.com", placeholder: "env:STRIPE_KEY", value: () => stripeKey }
 */
export interface PlaceholderCredential extends CredentialSource {
  /**
   * 8 to 128 letters, digits and characters of `-._~:/@$!*(){}[]`. The code may know it. No placeholder of a host may contain another
   * one of that host.
   */
  readonly placeholder: string;
  /**
   * Where it is replaced: in values of headers, which includes Basic authorization; in the query, also percent-encoded; in bodies that
   * are text, form data or JSON, unless they are compressed. Code can ask a host to keep what it sends, and to show it later: name
   * only the parts that the host reads the secret from. Default: all three.
   */
  readonly in?: readonly PlaceholderPart[] | undefined;
  readonly header?: undefined;
}

/** A part of a request in which placeholders are replaced. */
export type PlaceholderPart = "header" | "query" | "body";

/** Where a secret comes from, and the only host that gets it. */
export interface CredentialSource {
  /** A host name or an address, with or without a port, that `allow` covers. Default port: 443. */
  readonly host: string;
  /**
   * Returns the secret; called for each request to the host. What it throws reaches neither the code nor an event. Of a placeholder:
   * 1 to 8192 printable ASCII characters; a request fails if it returns anything else.
   */
  readonly value: () => string | Promise<string>;
  /** PEM certificates of the authority that signed the host's certificate, if Node does not trust it. Default: none. */
  readonly ca?: string | undefined;
}
