import {
  BackendUnavailableError,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type ExecuteOptions,
  type ExecutionEvent,
  ExecutorStoppedError,
  SubmittedRuns,
} from "@fenced/core";
import { joinSignals, longestTimer, untilAborted } from "@fenced/core/abort";
import { checkExecuteArguments } from "@fenced/core/options";
import { ForwardingExecutor } from "../forwarding-executor.ts";
import { HeldFiles, type Holder } from "../held-files.ts";
import { leavableStream } from "../leavable-stream.ts";

/** Exclusive use of a pool's executor until it is released. `await using` releases it. */
export interface ExecutorLease extends AsyncDisposable {
  /**
   * The started executor. After the release, its calls reject with `ExecutorStoppedError`. Its `stop()` also releases
   * the lease, and resolves when the executor is gone.
   */
  readonly executor: CodeExecutor;
  /**
   * Returns the executor to the pool: kills what is still running and rejects its calls with `ExecutorStoppedError`.
   * Resolves at once, while the pool ends the executor or resets it for the next caller. Idempotent.
   */
  release(): Promise<void>;
}

/** What the pool keeps of a lease. Not the lease itself, so that the pool can notice a forgotten one. */
export class LeaseRecord {
  /** True if the executor broke down during the lease. */
  isUnwell = false;
  /** Ports of its programs have addresses on this host, until it stops. */
  hasAddresses = false;
  readonly executor: CodeExecutor;
  readonly #end = new AbortController();
  readonly #onEnd: (record: LeaseRecord, discard: boolean) => Promise<void>;
  #uses = 0;
  #timer: NodeJS.Timeout | undefined;
  #gone: Promise<void> | undefined;

  /** @param onEnd - takes the executor back; resolves when it is gone, or in use again. */
  constructor(executor: CodeExecutor, onEnd: (record: LeaseRecord, discard: boolean) => Promise<void>) {
    this.executor = executor;
    this.#onEnd = onEnd;
  }

  /** Aborted when the lease ends, with the error for calls in progress. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Makes the lease end automatically after some time. */
  limit(milliseconds: number, onLate: (error: unknown) => void): void {
    if (milliseconds === Infinity) return;
    const end = (): void => {
      const late = leaseEnded(`it was not released within ${milliseconds} ms`);
      void this.end(late, { discard: true });
      onLate(late);
    };
    this.#timer = setTimeout(end, Math.min(milliseconds, longestTimer));
    this.#timer.unref();
  }

  hold(): () => void {
    this.#uses += 1;
    return () => {
      this.#uses -= 1;
    };
  }

  /** Ends the lease. @param options - `discard`: the executor must not be used again. */
  end(reason: unknown, { discard }: { readonly discard: boolean }): Promise<void> {
    if (this.#gone) return this.#gone;
    clearTimeout(this.#timer);
    this.#end.abort(reason);
    // Discard it if it is still in use, or its ports have addresses, since these could reach what is the next caller's.
    this.#gone = this.#onEnd(this, discard || this.isUnwell || this.hasAddresses || this.#uses > 0);
    return this.#gone;
  }
}

/**
 * The caller's side of a lease. Everything created from it refers to it, so that it is only garbage-collected once no
 * caller can use the executor any more.
 */
export class LeaseHolder implements Holder {
  readonly #record: LeaseRecord;

  constructor(record: LeaseRecord) {
    this.#record = record;
  }

  /** The lease to return to the caller. */
  get lease(): ExecutorLease {
    const release = (): Promise<void> => this.release();
    return { executor: this.#facade(), release, [Symbol.asyncDispose]: release };
  }

  get signal(): AbortSignal {
    return this.#record.signal;
  }

  hold(): () => void {
    return this.#record.hold();
  }

  async executor(signal?: AbortSignal): Promise<CodeExecutor> {
    this.signal.throwIfAborted();
    signal?.throwIfAborted();
    return this.#record.executor;
  }

  async use<T>(action: (executor: CodeExecutor) => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.signal.throwIfAborted();
    signal?.throwIfAborted();
    const letGo = this.hold();
    const acting = action(this.#record.executor).finally(letGo);
    try {
      return await untilAborted(acting, this.signal);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** @throws what `introduced` throws; the executor is then ended. */
  introduce(introduced: (executor: CodeExecutor) => void): void {
    try {
      introduced(this.#record.executor);
    } catch (error) {
      void this.#record.end(leaseEnded("its `onLease` threw an error"), { discard: true });
      throw error;
    }
  }

  async release(): Promise<void> {
    void this.#record.end(leaseEnded("it was released"), { discard: false });
  }

  #facade(): CodeExecutor {
    const { executor } = this.#record;
    const files = new HeldFiles(async () => this);
    const runStream = (blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> =>
      leavableStream((left) => this.#stream(left, blocks, options));
    const runs = new SubmittedRuns({ stream: runStream });
    return new ForwardingExecutor({
      run: (blocks, options) => this.#run(blocks, options),
      runStream,
      runs: () => runs,
      files: () => files,
      end: () => this.#record.end(leaseEnded("its executor was stopped"), { discard: true }),
      use: (action, signal) => this.use(action, signal),
      onAddress: () => {
        this.#record.hasAddresses = true;
      },
      onSessionLost: (listener) => this.#listen(listener),
      current: executor,
      kind: "An executor of a pool",
    });
  }

  async #run(blocks: readonly CodeBlock[], given: ExecuteOptions = {}): Promise<CodeResult> {
    const { options } = checkExecuteArguments(blocks, given);
    const signal = joinSignals(this.signal, options.signal);
    return this.use((executor) => executor.executeCodeBlocks(blocks, { ...given, signal }));
  }

  async *#stream(
    left: AbortSignal,
    blocks: readonly CodeBlock[],
    given: ExecuteOptions = {},
  ): AsyncGenerator<ExecutionEvent, void, void> {
    const { options } = checkExecuteArguments(blocks, given);
    const executor = await this.executor();
    const letGo = this.hold();
    const signal = joinSignals(this.signal, left, options.signal);
    try {
      yield* executor.streamCodeBlocks(blocks, { ...given, signal });
    } catch (error) {
      throw this.#explain(error);
    } finally {
      letGo();
    }
  }

  /** The next caller's losses are none of this one's business. */
  #listen(listener: (reason: string) => void): () => void {
    const stop = this.#record.executor.onSessionLost?.(listener) ?? (() => {});
    this.signal.addEventListener("abort", stop, { once: true });
    return () => {
      this.signal.removeEventListener("abort", stop);
      stop();
    };
  }

  /** Calls in progress fail in many ways when the lease ends; replaces their errors with the reason. */
  #explain(error: unknown): unknown {
    if (BackendUnavailableError.isInstance(error)) this.#record.isUnwell = true;
    return this.signal.aborted ? this.signal.reason : error;
  }
}

/** The error with which calls reject after the end of a lease. */
export function leaseEnded(why: string): ExecutorStoppedError {
  return new ExecutorStoppedError(`The lease of this executor has ended: ${why}`, {
    remedy: "Acquire another one from the pool.",
  });
}
