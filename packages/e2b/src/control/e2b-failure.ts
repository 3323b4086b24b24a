/** An answer of the control API that reports a failure: `{ code, message }`, where the code is the HTTP status. */
export class E2BFailure extends Error {
  override readonly name = "E2BFailure";
  readonly status: 400 | 403 | 404 | 409 | 501 | 503 | 507;

  constructor(status: E2BFailure["status"], message: string) {
    super(message);
    this.status = status;
  }
}
