/** What authorizes a request. */
export interface Credentials {
  readonly token?: string;
  readonly certificate?: { readonly cert: Buffer | string; readonly key: Buffer | string };
}

/**
 * Returns credentials, which may change over time.
 *
 * @param renew - true if the last ones were refused. Default: false.
 */
export type CredentialSource = (renew?: boolean) => Promise<Credentials>;

/** A cluster, and how to reach it. */
export interface ClusterAccess {
  /** Its name in errors, such as `context prod`. */
  readonly name: string;
  /** The API server. */
  readonly server: URL;
  /** Certificates to trust, as PEM. Default: those that Node trusts. */
  readonly authority?: Buffer;
  /** Trust any certificate. Default: false. */
  readonly insecure?: boolean;
  /** The name that the server's certificate must have. Default: the one in `server`. */
  readonly serverName?: string;
  /** An HTTP proxy to use. Default: none. */
  readonly proxy?: URL;
  /** Default: `default`. */
  readonly namespace?: string;
  readonly credentials: CredentialSource;
}
