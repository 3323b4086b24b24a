import { BackendUnavailableError, type CodeExecutor, ExecutorStoppedError } from "@fenced/core";
import { longestTimer, untilAborted } from "@fenced/core/abort";
import type { Holder } from "../held-files.ts";
import { OwnedExecutor } from "../owned-executor.ts";
import type { ExecutorSessionsOptions } from "./executor-sessions-options.ts";
import { Turns } from "./turns.ts";

/** Events of a session. */
export interface SessionEvents {
  /** Called with each executor that `create` returns. @throws InvalidInputError if it must not be used. */
  readonly onCreated: (executor: CodeExecutor) => void;
  /** Called when a count has changed. */
  readonly onChange: () => void;
  /**
   * Called when state is lost unexpectedly. Its next result tells the key, unless `isOver`: then the session ends.
   *
   * @param reason - `undefined` if the loss has been reported before.
   */
  readonly onLost: (reason: string | undefined, isOver: boolean) => void;
  /** Called when the session is gone. */
  readonly onEnded: () => void;
  /** Receives errors that no caller waits for. */
  readonly onError: (error: unknown) => void;
}

/** One key's executor, from its creation to its end. */
export class KeyedSession implements Holder {
  readonly turns: Turns;
  readonly #options: ExecutorSessionsOptions;
  readonly #events: SessionEvents;
  readonly #end = new AbortController();
  readonly #owned: OwnedExecutor;
  #current: CodeExecutor | undefined;
  #uses = 0;
  #isSuspect = false;
  /** The executor has reported a loss, and has not worked since. */
  #isReported = false;
  #isDead = false;
  #timer: NodeJS.Timeout | undefined;
  #ended: Promise<void> | undefined;

  constructor(key: string, options: ExecutorSessionsOptions, events: SessionEvents) {
    const { maxRunningPerKey: atOnce = 1, maxWaiting = 8 } = options;
    this.turns = new Turns({ atOnce, maxWaiting });
    this.#options = options;
    this.#events = events;
    this.#owned = new OwnedExecutor({
      create: (signal) => options.create(key, signal),
      onCreated: events.onCreated,
      startTimeoutMs: options.startTimeoutMs,
      stopTimeoutMs: options.stopTimeoutMs,
      signal: this.#end.signal,
      onError: events.onError,
    });
    this.#owned.opened.then(
      (executor) => this.#opened(executor),
      (reason: unknown) => this.#startFailed(reason),
    );
  }

  /** Aborted when the session ends, with the error for calls in progress. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get state(): "starting" | "open" | "ending" {
    if (this.#ended) return "ending";
    return this.#current ? "open" : "starting";
  }

  /** The started executor; `undefined` before and after. */
  get current(): CodeExecutor | undefined {
    return this.#ended ? undefined : this.#current;
  }

  /** Resolves when the session is gone; `undefined` before it starts to end. */
  get ended(): Promise<void> | undefined {
    return this.#ended;
  }

  /**
   * True if the session ended because its executor broke down; work that has not begun can then run in a new session.
   */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** True if a run or a file operation is in progress. */
  get isInUse(): boolean {
    return this.#uses > 0;
  }

  /**
   * Calls `action` with the executor; meanwhile the session does not become idle.
   *
   * @param signal - cancels the wait for the executor's start.
   * @throws ExecutorStoppedError if the session ends first.
   */
  async use<T>(action: (executor: CodeExecutor) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = this.hold();
    try {
      return await action(await this.executor(signal));
    } catch (error) {
      throw this.#explain(error);
    } finally {
      release();
    }
  }

  /** Keeps the session from becoming idle until the returned function is called. */
  hold(): () => void {
    clearTimeout(this.#timer);
    this.#uses += 1;
    return () => {
      this.#uses -= 1;
      this.#watchIdle();
      this.#events.onChange();
    };
  }

  /** Returns the started executor. Checks it first after a failure; a dead one ends the session. */
  async executor(signal?: AbortSignal): Promise<CodeExecutor> {
    this.#end.signal.throwIfAborted();
    const executor = await untilAborted(this.#owned.opened, signal).catch(async (error: unknown) => {
      // A failed start has ended the session.
      if (this.#owned.isMade && signal?.aborted !== true) await this.#ended;
      throw error;
    });
    this.#end.signal.throwIfAborted();
    if (this.#isSuspect) await untilAborted(this.#probe(executor), signal);
    return executor;
  }

  /** Call this after each run that had a result. */
  worked(): void {
    this.#isReported = false;
  }

  /**
   * Call this with each failure of the executor: after a broken backend, the executor is checked before it is used
   * again.
   */
  failed(error: unknown): unknown {
    if (BackendUnavailableError.isInstance(error)) this.#isSuspect = true;
    return this.#explain(error);
  }

  /**
   * Ends the session: calls in progress reject with `reason`, and the executor is disposed of. Idempotent; never
   * rejects.
   */
  end(reason: unknown): Promise<void> {
    if (this.#ended) return this.#ended;
    clearTimeout(this.#timer);
    this.#end.abort(reason);
    this.#ended = this.#owned.dispose().finally(() => this.#events.onEnded());
    this.#events.onChange();
    return this.#ended;
  }

  #opened(executor: CodeExecutor): void {
    this.#current = executor;
    executor.onSessionLost?.((reason) => {
      if (this.#ended) return;
      this.#isReported = true;
      this.#events.onLost(reason, false);
    });
    this.#events.onChange();
    this.#watchIdle();
  }

  /**
   * Callers that wait for the start get the error once the session no longer counts towards the limit, so that they can
   * retry at once.
   */
  async #startFailed(reason: unknown): Promise<void> {
    if (!this.#ended && this.#owned.isMade) {
      this.#ended = this.#owned.dispose().finally(() => this.#events.onEnded());
      await this.#ended;
      this.#end.abort(reason);
    }
    await this.end(reason);
  }

  /** Checks that the backend is still there. */
  async #probe(executor: CodeExecutor): Promise<void> {
    try {
      await executor.files.list();
      this.#isSuspect = false;
    } catch (error) {
      const lost = endedBecause("its executor broke down", error);
      this.#isDead = true;
      if (!this.#ended) this.#events.onLost(this.#isReported ? undefined : "The executor broke down.", true);
      void this.end(lost);
      throw lost;
    }
  }

  #watchIdle(): void {
    const { idleTimeoutMs = 600_000 } = this.#options;
    clearTimeout(this.#timer);
    if (this.#uses > 0 || !this.#current || this.#ended || idleTimeoutMs === Infinity) return;
    this.#timer = setTimeout(
      () => {
        this.#events.onLost(`The session was not used for ${idleTimeoutMs} ms.`, true);
        void this.end(endedBecause(`it was not used for ${idleTimeoutMs} ms`));
      },
      Math.min(idleTimeoutMs, longestTimer),
    );
    // The timer must not keep the program running: drain() is what ends sessions for good.
    this.#timer.unref();
  }

  /** Calls in progress fail in many ways when the session ends; replaces their errors with the reason. */
  #explain(error: unknown): unknown {
    return this.#end.signal.aborted && ExecutorStoppedError.isInstance(error) ? this.#end.signal.reason : error;
  }
}

/** The error with which calls reject after the end of a session. */
export function endedBecause(why: string, cause?: unknown): ExecutorStoppedError {
  return new ExecutorStoppedError(`The session was ended: ${why}`, {
    remedy: "Run again to start a new one.",
    ...(cause === undefined ? {} : { cause }),
  });
}
