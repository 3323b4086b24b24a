import {
  BackendUnavailableError,
  type CodeBlock,
  type CodeExecutor,
  ExecutorStoppedError,
  type SubmitOptions,
  type SubmittedRun,
} from "@fenced/core";
import { longestTimer, untilAborted, within } from "@fenced/core/abort";
import type { Leases } from "../directory/leases.ts";
import type { SessionRequest } from "../directory/session-directory.ts";
import type { SessionLease } from "../directory/session-lease.ts";
import type { Holder } from "../held-files.ts";
import { canMove, type ExecutorSessionsOptions } from "./executor-sessions-options.ts";
import { type Ending, HeldSession } from "./held-session.ts";
import { endedBecause, movedOn } from "./session-ended.ts";
import { Turns } from "./turns.ts";

/** How long runs that were aborted may take to end before a checkpoint is taken, in milliseconds. */
const restMs = 10_000;

/** Events of a session. */
export interface SessionEvents {
  /** Called with each executor that `create` returns. @throws InvalidInputError if it must not be used. */
  readonly onCreated: (executor: CodeExecutor) => void;
  /** Called when a count has changed. */
  readonly onChange: () => void;
  /** Called when state is lost unexpectedly. */
  readonly onLost: (reason: string) => void;
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
  readonly #opened: Promise<CodeExecutor>;
  /** Aborted while the session leaves this process, unless it has to stay. */
  #leaving = new AbortController();
  readonly #onLeft: (() => void)[] = [];
  #held: HeldSession | undefined;
  #current: CodeExecutor | undefined;
  #uses = 0;
  readonly #onRest: (() => void)[] = [];
  #isSuspect = false;
  /** The executor has reported a loss, and has not worked since. */
  #isReported = false;
  /** What was lost before the next result. */
  #lost: string | undefined;
  #isDead = false;
  /** Another process has asked for it. */
  #isAsked = false;
  /** How often it was to be left. */
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended: Promise<boolean> | undefined;

  constructor(
    key: string,
    { leases, ...options }: ExecutorSessionsOptions & { readonly leases: Leases },
    events: SessionEvents,
  ) {
    const { maxRunningPerKey: atOnce = 1, maxWaiting = 8 } = options;
    this.turns = new Turns({ atOnce, maxWaiting });
    this.#options = options;
    this.#events = events;
    this.#opened = this.#open(leases.take(key, "hand-over", this.#end.signal));
    this.#opened.then(
      (executor) => this.#announce(executor),
      (reason: unknown) => this.#startFailed(reason),
    );
  }

  /** Aborted when the session ends, with the error for calls in progress. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Aborted when calls that have not begun must ask for the session again: this one moves, or is kept. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  get state(): "starting" | "open" | "ending" {
    if (this.#ended) return "ending";
    return this.#current ? "open" : "starting";
  }

  /** The started executor; `undefined` before and after. */
  get current(): CodeExecutor | undefined {
    return this.#ended ? undefined : this.#current;
  }

  /** True while it accepts no calls. */
  get isLeaving(): boolean {
    return this.#ended !== undefined || this.#leaving.signal.aborted;
  }

  /** Waits until a session that is leaving is gone, or has to stay. */
  left(): Promise<void> {
    return new Promise((resolve) => {
      this.#onLeft.push(resolve);
    });
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
    this.assertStays();
    const release = this.hold();
    try {
      const result = await action(await this.executor(signal));
      this.assertHeld();
      await this.#held?.noteHandle();
      return result;
    } catch (error) {
      throw this.#explain(error);
    } finally {
      release();
    }
  }

  /** Submits a run that goes on without this process; returns `undefined` if the executor's runs do not. */
  async submit(blocks: readonly CodeBlock[], options?: SubmitOptions): Promise<SubmittedRun | undefined> {
    const run = await this.use(async (executor) =>
      executor.capabilities.keepsRuns === true ? executor.submit(blocks, options) : undefined,
    );
    const told = async (): Promise<void> => {
      if (!this.#ended) await this.changed();
    };
    run?.result().then(told, told);
    return run;
  }

  /**
   * @throws movedOn if it is being kept, since what a call did now might not be. While another call runs, one that begins is
   * part of what is kept after both: the running one may wait for it.
   */
  assertStays(): void {
    if (this.#leaving.signal.aborted && this.#uses === 0) throw movedOn;
  }

  /** Keeps the session from becoming idle until the returned function is called. */
  hold(): () => void {
    clearTimeout(this.#timer);
    this.#uses += 1;
    return () => {
      this.#uses -= 1;
      if (this.#uses === 0) this.#rest();
      this.#events.onChange();
    };
  }

  /** Returns the started executor. Checks it first after a failure; a dead one ends the session. */
  async executor(signal?: AbortSignal): Promise<CodeExecutor> {
    this.#end.signal.throwIfAborted();
    const executor = await untilAborted(this.#opened, signal).catch(async (error: unknown) => {
      // A failed start has ended the session.
      if (this.#held?.isMade !== false && signal?.aborted !== true) await this.#ended;
      throw error;
    });
    this.#end.signal.throwIfAborted();
    if (this.#isSuspect) await untilAborted(this.#probe(executor), signal);
    return executor;
  }

  /** @throws ExecutorStoppedError if another process may have the session: what this one did is not part of it. */
  assertHeld(): void {
    const reason = this.#held?.over;
    if (reason !== undefined) this.#cutOff(reason);
    this.#end.signal.throwIfAborted();
  }

  /** Call this after each run that had a result. @returns whether state was lost since the last one. */
  worked(): boolean {
    this.#isReported = false;
    const hasLost = this.#lost !== undefined;
    if (hasLost) this.#held?.told();
    this.#lost = undefined;
    return hasLost;
  }

  /** Call this after each call that may have changed something, before it is answered. Never rejects. */
  async changed(): Promise<void> {
    await this.#held?.noteHandle();
    if (this.#options.checkpointAfterRuns === true) await this.#held?.keep();
  }

  /**
   * Call this with each failure of the executor: after one of the backend, or when it was cut off, the executor is
   * checked before it is used again.
   */
  failed(error: unknown): unknown {
    // An executor that was stopped by nobody here was cut off: another one has its place.
    const isCutOff = ExecutorStoppedError.isInstance(error) && !this.#end.signal.aborted;
    if (isCutOff || BackendUnavailableError.isInstance(error)) this.#isSuspect = true;
    return this.#explain(error);
  }

  /**
   * Ends the session, and forgets it: calls in progress reject with `reason`, and the executor is disposed of.
   * Idempotent; never rejects.
   *
   * @returns true if nothing of it is kept, not even in the directory.
   */
  end(reason: unknown): Promise<boolean> {
    return this.#finish(reason, { forgets: true });
  }

  /** Ends the session because this process ends, and keeps what the options say. Idempotent; never rejects. */
  async drain(reason: unknown): Promise<void> {
    const { onDrain = this.#options.checkpoints ? "checkpoint" : "end" } = this.#options;
    if (onDrain === "checkpoint") await this.#finish(reason, { keeps: true });
    else if (onDrain === "detach") await this.#finish(reason, { detaches: true });
    else await this.#finish(reason, { lost: "The process that had the session was shut down.", forgets: true });
  }

  async #open(taking: Promise<SessionLease>): Promise<CodeExecutor> {
    const lease = await taking;
    if (this.#end.signal.aborted) {
      // It ended after it had the lease, and before this: nobody else would release it.
      await lease.release(lease.unopened);
      this.#end.signal.throwIfAborted();
    }
    const { onCreated, onError } = this.#events;
    let held: HeldSession;
    try {
      held = new HeldSession(lease, this.#options, { signal: this.#end.signal, onCreated, onError });
    } catch (error) {
      await lease.release(lease.unopened);
      throw error;
    }
    this.#held = held;
    lease.listen({
      onRequest: (request) => this.#requested(request),
      onOver: (reason) => this.#cutOff(reason),
    });
    const { executor, lost } = await held.opened;
    this.#lost = lost ?? lease.note.lost;
    if (lost !== undefined) this.#events.onLost(lost);
    return executor;
  }

  #announce(executor: CodeExecutor): void {
    this.#current = executor;
    executor.onSessionLost?.((reason) => {
      if (this.#ended) return;
      this.#isReported = true;
      this.#events.onLost(reason);
    });
    this.#events.onChange();
    if (this.#uses === 0) this.#rest();
  }

  /**
   * Callers that wait for the start get the error once the session no longer counts towards the limit, so that they can
   * retry at once.
   */
  async #startFailed(reason: unknown): Promise<void> {
    // Nothing has begun, so calls ask for the session again.
    if (!this.#ended && this.#held?.over !== undefined) this.#isDead = true;
    if (!this.#ended && this.#held?.isMade !== false) {
      this.#ended = this.#wind({});
      await this.#ended;
      this.#end.abort(reason);
    }
    await this.#finish(reason, {});
  }

  /** Checks that the backend is still there. */
  async #probe(executor: CodeExecutor): Promise<void> {
    try {
      await executor.files.list();
      this.#isSuspect = false;
    } catch (error) {
      const lost = endedBecause("its executor broke down", error);
      this.#isDead = true;
      if (ExecutorStoppedError.isInstance(error) && this.#held?.canBeLeft === true) {
        // Somebody without a right to it is connected to its place. The next session takes it back.
        void this.#finish(lost, { detaches: true });
        throw lost;
      }
      if (!this.#ended && !this.#isReported) this.#events.onLost("The executor broke down.");
      void this.#finish(lost, { lost: "The executor broke down." });
      throw lost;
    }
  }

  /** Another process may have the session: nothing that this one does is part of it any more. */
  #cutOff(reason: string): void {
    if (this.#ended) return;
    // Calls that have not begun ask for the session again.
    this.#isDead = true;
    if (this.#current) this.#events.onLost(reason);
    const ended = endedBecause(reason.replace(/^./, (first) => first.toLowerCase()));
    // Its place may be another process's now.
    void this.#finish(ended, this.#held?.canBeLeft === true ? { detaches: true } : { lost: reason });
  }

  /** Another process asks for the session. */
  #requested(request: SessionRequest): void {
    if (request === "end") void this.end(endedBecause("end() was called for it in another process"));
    if (request === "end" || !canMove(this.#options) || this.#leaving.signal.aborted) return;
    this.#isAsked = true;
    this.#leaving.abort(movedOn);
    if (this.#uses === 0) this.#rest();
  }

  /** No call is in progress. */
  #rest(): void {
    for (const resolve of this.#onRest.splice(0)) resolve();
    if (!this.#current || this.#ended) return;
    if (this.#leaving.signal.aborted) void this.#leave();
    else this.#watchIdle();
  }

  /** Keeps the session for another process or for later, or goes on with it if it cannot be kept. */
  async #leave(): Promise<void> {
    // An idle session whose place could be left is kept, but its place is not.
    const detaches = this.#isAsked && this.#options.onDrain === "detach";
    const attempt = (this.#attempts += 1);
    const isKept = detaches || (await this.#held?.keep()) === true;
    // If a call has come meanwhile, the checkpoint may lack what it did: there is another attempt when it has ended.
    if (this.#ended || attempt !== this.#attempts || (isKept && this.#uses > 0)) return;
    if (isKept) {
      await this.#finish(movedOn, { detaches });
      return;
    }
    this.#isAsked = false;
    this.#leaving = new AbortController();
    this.#sayLeft();
    if (this.#uses === 0) this.#rest();
  }

  #watchIdle(): void {
    const { idleTimeoutMs = 600_000 } = this.#options;
    clearTimeout(this.#timer);
    if (idleTimeoutMs === Infinity) return;
    this.#timer = setTimeout(() => this.#idle(idleTimeoutMs), Math.min(idleTimeoutMs, longestTimer));
    // The timer must not keep the program running: drain() is what ends sessions for good.
    this.#timer.unref();
  }

  #idle(idleTimeoutMs: number): void {
    if (this.#hasRuns) {
      this.#watchIdle();
      return;
    }
    const { onIdle = this.#options.checkpoints ? "checkpoint" : "end" } = this.#options;
    if (onIdle === "checkpoint") {
      this.#leaving.abort(movedOn);
      void this.#leave();
      return;
    }
    const lost = `The session was not used for ${idleTimeoutMs} ms.`;
    this.#events.onLost(lost);
    void this.#finish(endedBecause(`it was not used for ${idleTimeoutMs} ms`), { lost, forgets: true });
  }

  /** True while a run that goes on without this process has not ended. */
  get #hasRuns(): boolean {
    const executor = this.#current;
    return executor?.capabilities.keepsRuns === true && executor.runs().some(({ state }) => state === "running");
  }

  #finish(reason: unknown, ending: Ending & { readonly keeps?: boolean }): Promise<boolean> {
    if (this.#ended) return this.#ended;
    clearTimeout(this.#timer);
    this.#end.abort(reason);
    this.#ended = this.#wind(ending);
    this.#events.onChange();
    return this.#ended;
  }

  /** Ends everything, and then lets others have the key. @returns what `HeldSession.end` does. */
  async #wind({ keeps = false, ...ending }: Ending & { readonly keeps?: boolean }): Promise<boolean> {
    try {
      const now = keeps && this.#current ? await this.#keepLast() : ending.lost;
      // Its user may not have had a result that tells an earlier loss.
      const lost = ending.forgets === true ? now : (now ?? this.#lost);
      return (await this.#held?.end({ ...ending, lost })) ?? false;
    } finally {
      this.#events.onEnded();
      this.#sayLeft();
    }
  }

  #sayLeft(): void {
    for (const resolve of this.#onLeft.splice(0)) resolve();
  }

  /** Takes the last checkpoint. @returns why it could not be taken. */
  async #keepLast(): Promise<string | undefined> {
    if (this.#uses > 0) await within(restMs, this.#rested());
    if ((await this.#held?.keep()) === true) return undefined;
    const lost = "The session could not be kept: its last checkpoint failed.";
    this.#events.onLost(lost);
    return lost;
  }

  #rested(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRest.push(resolve);
    });
  }

  /** Calls in progress fail in many ways when the session ends; replaces their errors with the reason. */
  #explain(error: unknown): unknown {
    return this.#end.signal.aborted && ExecutorStoppedError.isInstance(error) ? this.#end.signal.reason : error;
  }
}
