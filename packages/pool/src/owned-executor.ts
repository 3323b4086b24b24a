import { BackendUnavailableError, type CodeExecutor, InvalidInputError } from "@fenced/core";
import { afterMs, joinSignals, untilAborted, within } from "@fenced/core/abort";
import { checkOptions, codeExecutorOption } from "@fenced/core/options";
import * as z from "zod";

/**
 * How long disposal waits for a `create` that ignores its signal; an executor that arrives later is disposed of then.
 */
const createGraceMs = 10_000;
const created = z.object({ executor: codeExecutorOption });

/** How an executor is created, started and ended. */
export interface OwnedExecutorOptions {
  /** Creates a new executor that nothing else uses. */
  readonly create: (signal: AbortSignal) => CodeExecutor | Promise<CodeExecutor>;
  /** Called with what `create` returned. If it throws, the executor is not used, and not disposed of. */
  readonly onCreated: (executor: CodeExecutor) => void;
  /** Prepares the started executor for use. */
  readonly prepare?: ((executor: CodeExecutor, signal: AbortSignal) => Promise<void>) | undefined;
  /** Lets go of an executor that was created, whether it has started or not. Default: disposes of it. */
  readonly letGo?: ((executor: CodeExecutor) => Promise<void>) | undefined;
  /** Time limit for all of that together in milliseconds. Default: 120,000. */
  readonly startTimeoutMs?: number | undefined;
  /** How long to wait for its end, in milliseconds. Default: 60,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** Cancels its creation and start. */
  readonly signal: AbortSignal;
  /** Receives errors that no caller waits for, such as a failed stop. */
  readonly onError: (error: unknown) => void;
}

/** An executor that this package creates, starts within a time limit, and disposes of, however slow or broken it is. */
export class OwnedExecutor {
  /** Resolves to the executor when it is ready; rejects if it could not be created, started or prepared. */
  readonly opened: Promise<CodeExecutor>;
  readonly #options: OwnedExecutorOptions;
  readonly #making: Promise<CodeExecutor>;
  #isMade = false;
  #isLate = false;
  #disposed: Promise<void> | undefined;

  constructor(options: OwnedExecutorOptions) {
    this.#options = options;
    this.#making = Promise.resolve()
      .then(async () => {
        const { executor } = checkOptions(created, { executor: await options.create(options.signal) }, "create");
        options.onCreated(executor);
        return executor;
      })
      .finally(() => {
        this.#isMade = true;
      });
    this.opened = this.inTime(async (signal) => {
      const executor = await untilAborted(this.#making, signal);
      await untilAborted(executor.start({ signal }), signal);
      await untilAborted(options.prepare?.(executor, signal) ?? Promise.resolve(), signal);
      return executor;
    });
    // Callers that wait for it see the failure; without any, it must not end the process.
    this.opened.catch(() => {});
  }

  /** True once `create` has returned an executor, or failed. */
  get isMade(): boolean {
    return this.#isMade;
  }

  /** True if the start exceeded its time limit. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Runs `action` with the time limit of a start, and cancels it when the executor is no longer wanted. */
  async inTime<T>(action: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { startTimeoutMs = 120_000, signal: end } = this.#options;
    const late = new AbortController();
    const cancel = afterMs(startTimeoutMs, () => {
      this.#isLate = true;
      late.abort(startedLate(startTimeoutMs));
    });
    const signal = joinSignals(late.signal, end);
    try {
      return await untilAborted(action(signal), signal);
    } finally {
      cancel();
    }
  }

  /** Disposes of the executor, even if it arrives late. Never rejects, and resolves even if disposal hangs. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    const { onError, stopTimeoutMs = 60_000, letGo = disposeOf } = this.#options;
    try {
      // Callers that waited for a failed start have already seen the error.
      const making = this.#making.catch(() => undefined);
      const disposed = making.then((executor) => executor && letGo(executor));
      disposed.catch(onError);
      if (!this.#isMade && !(await endsWithin(createGraceMs, making))) return;
      const stopped = disposed.catch(() => {});
      if (!(await endsWithin(stopTimeoutMs, stopped))) onError(stoppedLate(stopTimeoutMs));
    } catch (error) {
      onError(error);
    }
  }
}

/**
 * Records an executor that `create` has returned. Two users who get the same one read each other's files, and the first of
 * them to leave stops it.
 *
 * @throws InvalidInputError if `create` has returned it before.
 */
export function recordNew(executor: CodeExecutor, known: WeakSet<CodeExecutor>): void {
  if (known.has(executor)) {
    throw new InvalidInputError("`create` returned an executor that it has returned before", {
      remedy: "Create a new executor in each call.",
    });
  }
  known.add(executor);
}

async function disposeOf(executor: CodeExecutor): Promise<void> {
  await executor[Symbol.asyncDispose]();
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
  return new BackendUnavailableError(`An executor did not stop within ${milliseconds} ms; parts of it may remain`, {
    remedy: "Check its backend, or raise stopTimeoutMs.",
  });
}
