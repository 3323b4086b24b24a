import {
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  type ExecuteOptions,
  type ExecutionEvent,
  InvalidInputError,
  QuotaExceededError,
  SubmittedRuns,
  type WorkspaceFiles,
} from "@fenced/core";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { Leases } from "../directory/leases.ts";
import { memoryDirectory } from "../directory/memory-directory.ts";
import { Drain, type DrainOptions } from "../drain.ts";
import { ForwardingExecutor } from "../forwarding-executor.ts";
import { HeldFiles } from "../held-files.ts";
import { leavableStream } from "../leavable-stream.ts";
import { recordNew } from "../owned-executor.ts";
import {
  assertKept,
  canMove,
  type ExecutorSessionsOptions,
  executorSessionsOptions,
} from "./executor-sessions-options.ts";
import { KeyedSession } from "./keyed-session.ts";
import { endLeft } from "./left-session.ts";
import { endedBecause, movedOn } from "./session-ended.ts";
import { recordCounts, type SessionCounts } from "./session-telemetry.ts";

/** A run's hold on its session. */
interface Lease {
  readonly session: KeyedSession;
  readonly executor: CodeExecutor;
  /** Aborted when the session ends, or by the caller. */
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/**
 * Manages one executor for each key: a user, a chat, a tenant. A key's session starts with its first run or file
 * operation, keeps its state from run to run, and ends when it is idle, on `end(key)`, or on `drain()`. Each key has
 * its own queue, so one key cannot block another.
 *
 * A session that is lost (its executor broke down, or it was idle too long) is repaired or replaced by the next run,
 * whose result has `stateLost: true`; `onSessionLost` reports it at once.
 *
 * @example
 * const sessions = new ExecutorSessions({ create: () => new DockerCommandLineCodeExecutor() });
 * const result = await sessions.run("user-7", [{ language: "python", code: "print(6 * 7)" }]);
 * process.once("SIGTERM", () => void sessions.drain({ graceMs: 10_000 }));
 */
export class ExecutorSessions implements AsyncDisposable {
  readonly #options: ExecutorSessionsOptions;
  readonly #sessions = new Map<string, KeyedSession>();
  readonly #leases: Leases;
  readonly #listeners = new Map<string, Set<(reason: string) => void>>();
  /** Everything that `create` has returned, so that no two sessions use the same executor. */
  readonly #known = new WeakSet<CodeExecutor>();
  readonly #submitted = new Map<string, SubmittedRuns>();
  readonly #drain = new Drain();

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: ExecutorSessionsOptions) {
    this.#options = checkOptions(executorSessionsOptions, options, "ExecutorSessions");
    assertKept(this.#options);
    const { directory = memoryDirectory(), leaseMs = 15_000, handoverTimeoutMs = 60_000 } = this.#options;
    this.#leases = new Leases({
      directory,
      leaseMs,
      waitMs: handoverTimeoutMs,
      canMove: canMove(this.#options),
      onError: (error) => this.#report(error),
    });
  }

  /** The current number of sessions and runs; also available as telemetry gauges. */
  get counts(): SessionCounts {
    const sessions = [...this.#sessions.values()];
    const inState = (state: KeyedSession["state"]): number => sessions.filter((one) => one.state === state).length;
    return {
      open: inState("open"),
      starting: inState("starting"),
      ending: inState("ending"),
      running: sessions.filter(({ turns, state }) => state === "open" && turns.taken > 0).length,
      waiting: sessions.reduce((sum, { turns }) => sum + turns.waiting, 0),
    };
  }

  /**
   * Runs blocks in the key's session when it is the run's turn, as `CodeExecutor.executeCodeBlocks` does.
   *
   * @throws QuotaExceededError at once if there are `maxSessions` sessions, or `maxWaiting` runs of the key are already
   * waiting.
   * @throws ExecutorStoppedError if the session ends meanwhile, or after `drain()`.
   * @throws as `CodeExecutor.executeCodeBlocks` does.
   */
  async run(key: string, blocks: readonly CodeBlock[], options: ExecuteOptions = {}): Promise<CodeResult> {
    assertKey(key, "run");
    const { session, executor, signal, release } = await this.#lease(key, options.signal);
    try {
      const result = await executor.executeCodeBlocks(blocks, { ...options, signal });
      return await told(session, result);
    } catch (error) {
      throw session.failed(error);
    } finally {
      release();
    }
  }

  /**
   * Does the same as `run` and yields everything as it happens, like `CodeExecutor.streamCodeBlocks`. Leaving the loop
   * ends the run, or its wait for a turn.
   *
   * @throws QuotaExceededError before it returns, so that a server can still choose the response status.
   */
  runStream(
    key: string,
    blocks: readonly CodeBlock[],
    options: ExecuteOptions = {},
  ): AsyncIterable<ExecutionEvent> & AsyncIterator<ExecutionEvent, void, void> {
    assertKey(key, "runStream");
    this.#checkRoom(key);
    this.#sessions.get(key)?.turns.checkRoom();
    return leavableStream((left) =>
      this.#stream(key, blocks, { ...options, signal: joinSignals(options.signal, left) }),
    );
  }

  /**
   * The key's files. The first call binds them to the key's session, or starts one. After the end of that session,
   * calls reject with `ExecutorStoppedError`: a late upload does not start a new session.
   */
  files(key: string): WorkspaceFiles {
    assertKey(key, "files");
    return new HeldFiles(() => this.#session(key, undefined));
  }

  /**
   * The key's session as a `CodeExecutor`, for an agent or a tool: its runs wait their turn like all others, and its
   * `stop()` ends the session. It can do what the key's executor can, which is known while the session is open:
   * `capabilities` throws before. Agents, tools and servers start it, and then ask.
   */
  executor(key: string): CodeExecutor {
    assertKey(key, "executor");
    const current = (): CodeExecutor | undefined => this.#sessions.get(key)?.current;
    return new ForwardingExecutor({
      run: (...call) => this.run(key, ...call),
      runStream: (...call) => this.runStream(key, ...call),
      runs: () => this.#runsOf(key),
      ...(this.#options.onDrain === "detach" && {
        submit: (...call) => this.#inSession(key, undefined, (session) => session.submit(...call)),
      }),
      files: () => this.files(key),
      end: () => this.end(key),
      use: (action, signal) => this.#inSession(key, signal, (session) => session.use(action, signal)),
      onSessionLost: (listener) => this.#listen(key, listener),
      get current() {
        return current();
      },
      kind: "A session of ExecutorSessions",
    });
  }

  /**
   * Ends the key's session, also if another process has it: kills what is running, and deletes everything that the executor
   * created before it resolves. Deletes the session's checkpoint, too; if another process has the session, that one does so,
   * perhaps a moment later. Idempotent.
   *
   * @throws SessionInUseError if another process has it, and does not end it within `handoverTimeoutMs`.
   * @throws BackendUnavailableError if the directory does not answer, or has not recorded it.
   * @throws what the store does if it cannot delete the checkpoint, which no session knows any more. If the session is open,
   * `onError` of the process that has it receives that instead.
   */
  async end(key: string): Promise<void> {
    const isForgotten = await this.#sessions.get(key)?.end(endedBecause("end() was called for it"));
    if (isForgotten === true || this.#drain.signal.aborted) return;
    const lease = await this.#leases.take(key, "end", this.#drain.signal);
    await endLeft(lease, this.#options, (error) => this.#report(error));
  }

  /**
   * Ends all sessions for good, for a service that shuts down. Waiting and new runs reject with `ExecutorStoppedError`;
   * runs in progress may continue for `graceMs` and are then killed. Resolves when all sessions are gone. A second call
   * can shorten the grace period.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    const rested = this.#drain.begin(options);
    this.#changed();
    await rested;
    const reason: unknown = this.#drain.signal.reason;
    await Promise.all([...this.#sessions.values()].map((session) => session.drain(reason)));
    await this.#leases.close();
  }

  /** Ends all sessions at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain({ graceMs: 0 });
  }

  /** The key's submitted runs, which are kept until its session ends. */
  #runsOf(key: string): SubmittedRuns {
    const known = this.#submitted.get(key);
    if (known) return known;
    const runs = new SubmittedRuns({ stream: (blocks, options) => this.runStream(key, blocks, options) });
    this.#submitted.set(key, runs);
    // Asking for runs of keys that have none must leave nothing, and neither may users who never come back.
    const { maxSessions = 32 } = this.#options;
    for (const [other, { isRunning }] of this.#submitted) {
      if (this.#submitted.size <= maxSessions) break;
      if (!isRunning && !this.#sessions.has(other) && other !== key) this.#submitted.delete(other);
    }
    return runs;
  }

  /** Runs that wait for the key's next session still belong to it, and so do those that died with its executor. */
  #forgetRuns(key: string, isDead: boolean): void {
    if (!isDead && this.#submitted.get(key)?.isRunning !== true) this.#submitted.delete(key);
  }

  async *#stream(
    key: string,
    blocks: readonly CodeBlock[],
    options: ExecuteOptions,
  ): AsyncGenerator<ExecutionEvent, void, void> {
    const { session, executor, signal, release } = await this.#lease(key, options.signal);
    try {
      for await (const event of executor.streamCodeBlocks(blocks, { ...options, signal })) {
        session.assertHeld();
        yield event.type === "result" ? { ...event, result: await told(session, event.result) } : event;
      }
    } catch (error) {
      throw session.failed(error);
    } finally {
      release();
    }
  }

  /** Waits for a turn, and for the executor. */
  async #lease(key: string, signal: AbortSignal | undefined): Promise<Lease> {
    for (;;) {
      const session = await this.#session(key, signal);
      const letGo = session.hold();
      let endTurn: (() => void) | undefined;
      try {
        const ending = joinSignals(session.signal, this.#drain.signal, signal);
        const taken = session.turns.take(joinSignals(ending, session.leaving));
        this.#changed();
        const end = (endTurn = await taken);
        const executor = await session.executor(ending);
        this.#changed();
        const release = (): void => {
          end();
          letGo();
        };
        return { session, executor, signal: joinSignals(session.signal, signal), release };
      } catch (error) {
        endTurn?.();
        letGo();
        if (!(session.isDead || error === movedOn) || this.#drain.signal.aborted) throw error;
      }
    }
  }

  /** Calls `action` with the key's session, and again with the next one if the session leaves before the call begins. */
  async #inSession<T>(
    key: string,
    signal: AbortSignal | undefined,
    action: (session: KeyedSession) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const session = await this.#session(key, signal);
      try {
        return await action(session);
      } catch (error) {
        // It left before the call began.
        if (error !== movedOn) throw error;
      }
    }
  }

  /** Returns the key's session, or a new one; first waits for a session that is ending. */
  async #session(key: string, signal: AbortSignal | undefined): Promise<KeyedSession> {
    for (;;) {
      this.#checkRoom(key);
      const session = this.#sessions.get(key);
      if (session === undefined) return this.#begin(key);
      if (!session.isLeaving) return session;
      await untilAborted(session.left(), signal);
    }
  }

  #begin(key: string): KeyedSession {
    const session = new KeyedSession(
      key,
      { ...this.#options, leases: this.#leases },
      {
        onCreated: (executor) => recordNew(executor, this.#known),
        onChange: () => this.#changed(),
        onLost: (reason) => this.#sayLost(key, reason),
        onEnded: () => {
          this.#sessions.delete(key);
          this.#forgetRuns(key, session.isDead);
          this.#changed();
        },
        onError: (error) => this.#report(error),
      },
    );
    this.#sessions.set(key, session);
    this.#changed();
    return session;
  }

  #checkRoom(key: string): void {
    this.#drain.signal.throwIfAborted();
    const { maxSessions = 32 } = this.#options;
    if (!this.#sessions.has(key) && this.#sessions.size >= maxSessions) {
      throw new QuotaExceededError(
        `There are already ${this.#sessions.size} sessions, the most that maxSessions allows`,
        {
          remedy: "Try again when one of them has ended, or raise maxSessions.",
        },
      );
    }
  }

  #changed(): void {
    recordCounts(this.counts);
    if (![...this.#sessions.values()].some(({ isInUse }) => isInUse)) this.#drain.rested();
  }

  #listen(key: string, listener: (reason: string) => void): () => void {
    // The same function may be given twice.
    const own = (reason: string): void => listener(reason);
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
    };
  }

  #sayLost(key: string, reason: string): void {
    const listeners: ((reason: string) => unknown)[] = [...(this.#listeners.get(key) ?? [])];
    for (const tell of [() => this.#options.onSessionLost?.(key, reason), ...listeners]) {
      try {
        // An error in the application's callback must neither keep the session nor end this process.
        const returned: unknown = tell(reason);
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#report(error));
      } catch (error) {
        this.#report(error);
      }
    }
  }

  #report(error: unknown): void {
    if (this.#options.onError) this.#options.onError(error);
    else process.emitWarning(error instanceof Error ? error : String(error));
  }
}

/** Completes a result: what it reports is kept before, and it may have to report a loss. */
async function told(session: KeyedSession, result: CodeResult): Promise<CodeResult> {
  session.assertHeld();
  await session.changed();
  session.assertHeld();
  return session.worked() ? { ...result, stateLost: true } : result;
}

/** Callers without types forget the key, or pass a number. */
function assertKey(key: unknown, method: string): void {
  if (typeof key === "string") return;
  throw new InvalidInputError(`sessions.${method}: the key is ${key === undefined ? "missing" : `not a string`}`, {
    remedy: `Pass the name of the user, chat or tenant first, such as \`sessions.${method}("user-7", …)\`.`,
  });
}
