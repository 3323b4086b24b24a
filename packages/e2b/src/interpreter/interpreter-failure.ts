/** What a client of the code interpreter is told of a request that fails. */
export class InterpreterFailure extends Error {
  override readonly name = "InterpreterFailure";
  /** The HTTP status of the answer. */
  readonly status: 400 | 403 | 404 | 413 | 422 | 429 | 500 | 502;

  constructor(status: InterpreterFailure["status"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}
