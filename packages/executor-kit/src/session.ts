import { ExecutorStoppedError } from "@fenced/core";
import { Turns } from "./run/turns.ts";

/** One stretch of an executor's life: from a start or restart to the next restart or stop. */
export class Session {
  /** Resolves when blocks can run, rejects if the session could not be opened. */
  readonly ready: Promise<void>;
  readonly turns: Turns = new Turns();
  readonly #ending = new AbortController();
  readonly #runs = new Set<Promise<void>>();
  #functions: Promise<void> | undefined;
  #opened = false;

  constructor(open: (signal: AbortSignal) => Promise<void>) {
    // Deferred, so that the maker of this session can keep it before `open` looks at it.
    this.ready = Promise.resolve()
      .then(() => open(this.signal))
      .then(() => {
        this.#opened = true;
      });
    // Whoever waits for `ready` sees its failure; if nobody does, it must not end the process.
    this.ready.catch(() => {});
  }

  /** Aborted, with an `ExecutorStoppedError`, when the session ends. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether blocks can run, or could until the session ended. */
  get opened(): boolean {
    return this.#opened;
  }

  /** Counts a block in; the function that it returns counts it out. */
  begin(): () => void {
    let finish: () => void = () => {};
    const run = new Promise<void>((resolve) => {
      finish = resolve;
    });
    this.#runs.add(run);
    return () => {
      this.#runs.delete(run);
      finish();
    };
  }

  /** Runs `setUp` before the first block; again for the next call if it failed. */
  setUpFunctionsOnce(setUp: () => Promise<void>): Promise<void> {
    if (!this.#functions) {
      this.#functions = setUp();
      this.#functions.catch(() => {
        this.#functions = undefined;
      });
    }
    return this.#functions;
  }

  /** What was set up is gone: the next call does it again. */
  forgetFunctions(): void {
    this.#functions = undefined;
  }

  /** Aborts all that is under way and waits for its end. */
  async end(): Promise<void> {
    this.#ending.abort(
      new ExecutorStoppedError("The executor was stopped or restarted during this call", {
        remedy: "Call again if the code should still run; what it had written to the workspace may be incomplete.",
      }),
    );
    await this.ready.catch(() => {});
    await Promise.all(this.#runs);
  }
}
