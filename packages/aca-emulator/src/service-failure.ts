/** An answer that refuses a request, thrown by its handler. */
export class ServiceFailure extends Error {
  readonly status: number;
  /** The body's `error.code`; `undefined` if the answer has no body, like the service's 401. */
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
