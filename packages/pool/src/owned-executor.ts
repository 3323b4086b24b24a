import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { afterMs, untilAborted, within } from "@fenced/core/abort";
import { checkOptions, codeExecutorOption } from "@fenced/core/options";
import * as z from "zod";

/** So long the end waits for a `create` that ignores its signal; what it makes later is disposed of then. */
const createGraceMs = 10_000;
const created = z.object({ executor: codeExecutorOption });

/** How an executor is made, started and ended. */
export interface OwnedExecutorOptions {
  /** Makes it; a new one, that nobody else uses. */
  readonly create: (signal: AbortSignal) => CodeExecutor | Promise<CodeExecutor>;
  /** Makes it ready after its start. */
  readonly prepare?: (executor: CodeExecutor, signal: AbortSignal) => Promise<void>;
  /** Milliseconds that all of that may take together. Default: 120,000. */
  readonly startTimeoutMs?: number;
  /** Milliseconds that its end may take; then nobody waits for it any more. Default: 60,000. */
  readonly stopTimeoutMs?: number;
  /** Ends the making and the start. */
  readonly signal: AbortSignal;
  /** Gets what nobody waits for: it could not be stopped. */
  readonly onError: (error: unknown) => void;
}

/** An executor that this package makes, starts within a time limit, and disposes of, however slow or broken it is. */
export class OwnedExecutor {
  /** The executor, when it is ready; rejects if it could not be made, started or prepared. */
  readonly opened: Promise<CodeExecutor>;
  readonly #options: OwnedExecutorOptions;
  readonly #making: Promise<CodeExecutor>;
  #isMade = false;
  #isLate = false;
  #disposed: Promise<void> | undefined;

  constructor(options: OwnedExecutorOptions) {
    this.#options = options;
    this.#making = Promise.resolve()
      .then(async () => checkOptions(created, { executor: await options.create(options.signal) }, "create").executor)
      .finally(() => {
        this.#isMade = true;
      });
    this.opened = this.inTime(async (signal) => {
      const executor = await untilAborted(this.#making, signal);
      await untilAborted(executor.start({ signal }), signal);
      await untilAborted(options.prepare?.(executor, signal) ?? Promise.resolve(), signal);
      return executor;
    });
    // Those who wait for it see its failure; if nobody does, it must not end the process.
    this.opened.catch(() => {});
  }

  /** `create` has made the executor, or failed. */
  get isMade(): boolean {
    return this.#isMade;
  }

  /** The time limit of the start was reached. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Lets `action` take as long as a start may, and no longer than the executor is wanted. */
  async inTime<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { startTimeoutMs = 120_000, signal: end } = this.#options;
    const late = new AbortController();
    const cancel = afterMs(startTimeoutMs, () => {
      this.#isLate = true;
      late.abort(startedLate(startTimeoutMs));
    });
    const signal = AbortSignal.any([late.signal, end]);
    try {
      return await untilAborted(action(signal), signal);
    } finally {
      cancel();
    }
  }

  /** Disposes of the executor, also of one that comes late. Never rejects, and resolves even if that takes for ever. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    const { onError, stopTimeoutMs = 60_000 } = this.#options;
    try {
      // Of a start that failed everybody who waited for it has heard.
      const making = this.#making.catch(() => undefined);
      const disposed = making.then((executor) => executor?.[Symbol.asyncDispose]());
      disposed.catch(onError);
      if (!this.#isMade && !(await endsWithin(createGraceMs, making))) return;
      const stopped = disposed.catch(() => {});
      if (!(await endsWithin(stopTimeoutMs, stopped))) onError(stoppedLate(stopTimeoutMs));
    } catch (error) {
      onError(error);
    }
  }
}

async function endsWithin(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  return (
    (await within(
      milliseconds,
      promise.then(() => true),
    )) === true
  );
}

function startedLate(milliseconds: number): BackendUnavailableError {
  return new BackendUnavailableError(`The executor did not start within ${milliseconds} ms`, {
    remedy: "Check what create does, or raise startTimeoutMs.",
  });
}

function stoppedLate(milliseconds: number): BackendUnavailableError {
  return new BackendUnavailableError(
    `An executor did not stop within ${milliseconds} ms; something of it may be left`,
    {
      remedy: "Check the place where it runs, or raise stopTimeoutMs.",
    },
  );
}
