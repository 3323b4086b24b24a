/** A refusal by the service. Internal to this package: callers get the result of `explainError`. */
export class ServiceError extends Error {
  readonly status: number;
  /** `error.code` of the body; empty if there is none. */
  readonly code: string;
  /** The service's explanation. */
  readonly reason: string;
  /** The pause that the service asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    details: { readonly code: string; readonly reason: string; readonly retryAfterMs?: number | undefined },
  ) {
    super(`${status} ${details.code}: ${details.reason}`);
    this.status = status;
    this.code = details.code;
    this.reason = details.reason;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** The requested session no longer exists. */
  get isSessionGone(): boolean {
    return this.code === "SessionWithIdentifierNotFound";
  }

  /** All sessions of the pool are taken: a 404 according to the documentation, 429 or 500 in practice. */
  get isCapacity(): boolean {
    if (this.status === 429) return true;
    return (
      [404, 500, 503].includes(this.status) &&
      /capacity|concurrent.*session|no (?:free|available|ready) session/i.test(`${this.code} ${this.reason}`)
    );
  }

  /** The service clearly reports that it did not carry out the request. */
  get isRefusal(): boolean {
    if (this.isCapacity) return true;
    // Without `Retry-After`, it may be a gateway that gave up waiting for its backend.
    if (this.status === 503) return this.retryAfterMs !== undefined;
    return this.status >= 400 && this.status < 500 && this.status !== 408;
  }

  /** A later retry may help. */
  get isPassing(): boolean {
    return this.isCapacity || [408, 500, 502, 503, 504].includes(this.status);
  }
}

/** A request that got no answer. */
export class ConnectionError extends Error {
  /** False if the request cannot have reached the service. */
  readonly sent: boolean;

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.sent = !neverSent.has(codeOf(cause));
  }
}

/** Codes of errors that occur before a request is written. */
const neverSent: ReadonlySet<string> = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function codeOf(error: unknown): string {
  const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
  return typeof code === "string" ? code : "";
}

/** Whether an error, including one of `explainError`, says that the session no longer exists. */
export function isSessionGone(error: unknown): boolean {
  if (error instanceof ServiceError) return error.isSessionGone;
  return error instanceof Error && error.cause instanceof ServiceError && error.cause.isSessionGone;
}
