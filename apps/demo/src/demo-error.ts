/** What ends the demo with a message for its user and no stack trace. */
export class DemoError extends Error {
  /** 2: the command line cannot be right; 1: it went wrong on the way. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.name = "DemoError";
    this.exitCode = exitCode;
  }
}
