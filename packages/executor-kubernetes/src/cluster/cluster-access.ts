/** What a request is authorised by. */
export interface Credentials {
  readonly token?: string;
  readonly certificate?: { readonly cert: Buffer | string; readonly key: Buffer | string };
}

/**
 * Gives credentials, which may change.
 *
 * @param renew - the last ones were refused.
 */
export type CredentialSource = (renew?: boolean) => Promise<Credentials>;

/** A cluster, and how to get at it. */
export interface ClusterAccess {
  /** For errors: `context prod`. */
  readonly name: string;
  /** The API server. */
  readonly server: URL;
  /** Certificates to trust, as PEM. Default: those that Node trusts. */
  readonly authority?: Buffer;
  /** Trust any certificate. Default: false. */
  readonly insecure?: boolean;
  /** The name that the server's certificate has to have. Default: that in `server`. */
  readonly serverName?: string;
  /** An HTTP proxy on the way. Default: there is none. */
  readonly proxy?: URL;
  /** Default: `default`. */
  readonly namespace?: string;
  readonly credentials: CredentialSource;
}
