/** Codes of the Connect protocol that this server uses, with their HTTP statuses. https://connectrpc.com/docs/protocol */
const statuses = {
  invalid_argument: 400,
  failed_precondition: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  already_exists: 409,
  resource_exhausted: 429,
  internal: 500,
  unimplemented: 501,
  unavailable: 503,
  deadline_exceeded: 504,
} as const;

/** See `statuses`. */
export type ConnectCode = keyof typeof statuses;

/** What a client is told; nothing else of an error reaches it. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** The HTTP status of a response to a single request. */
  get status(): number {
    return statuses[this.code];
  }

  /** The error as the protocol has it. */
  toJSON(): { readonly code: ConnectCode; readonly message: string } {
    return { code: this.code, message: this.message };
  }
}

/** Whether a word is one of the codes. */
export function isConnectCode(word: string): word is ConnectCode {
  return Object.hasOwn(statuses, word);
}
