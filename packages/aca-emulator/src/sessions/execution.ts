import type { RunReport } from "./session-process.ts";

/** What a client asks to be run. */
export interface ExecutionRequest {
  readonly id: string;
  readonly executionType: "Synchronous" | "Asynchronous";
  readonly code: string;
  /** Seconds. */
  readonly timeout: number;
  /** Bytes of each stream that are kept. */
  readonly outputLimit: number;
  /** Forget the variables first. */
  readonly emptyKernel: boolean;
}

/** One piece of code in a session, from its acceptance to its end. */
export class Execution {
  readonly request: ExecutionRequest;
  /** Resolves when it has ended, in whatever way. */
  readonly ended: Promise<void>;
  #status = "NotStarted";
  #report: RunReport | undefined;
  #milliseconds = 0;

  /** @param run - runs the code when its turn has come; calls back when it begins. */
  constructor(request: ExecutionRequest, run: (begins: () => void) => Promise<RunReport>) {
    this.request = request;
    let started = performance.now();
    const begins = (): void => {
      started = performance.now();
      this.#status = "Running";
    };
    this.ended = run(begins).then((report) => {
      this.#milliseconds = Math.round(performance.now() - started);
      this.#status = report.status;
      this.#report = report;
    });
  }

  get status(): string {
    return this.#status;
  }

  get report(): RunReport | undefined {
    return this.#report;
  }

  get milliseconds(): number {
    return this.#milliseconds;
  }
}
