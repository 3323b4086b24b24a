/** An answer that refuses a request, thrown by whatever handles it. */
export class ServiceFailure extends Error {
  readonly status: number;
  /** The body's `error.code`; `undefined`: the answer has no body, as the service's 401. */
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string | undefined,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}
