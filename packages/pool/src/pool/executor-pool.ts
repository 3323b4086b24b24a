import { BackendUnavailableError, type CodeExecutor, QuotaExceededError } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { Drain, type DrainOptions } from "../drain.ts";
import { WaitingLine } from "../waiting-line.ts";
import { type ExecutorLease, leaseEnded, LeaseHolder, LeaseRecord } from "./executor-lease.ts";
import {
  type AcquireOptions,
  acquireOptions,
  type PoolStartOptions,
  poolStartOptions,
  type ExecutorPoolOptions,
  poolSettings,
  type PoolSettings,
} from "./executor-pool-options.ts";
import { PoolMember } from "./pool-member.ts";
import { type PoolCounts, recordPoolCounts, watchAcquire } from "./pool-telemetry.ts";
import { ReadyMembers } from "./ready-members.ts";
import { RetryPace } from "./retry-pace.ts";

/** Maximum number of executors that start at the same time. */
const startsAtOnce = 8;
/** How long a caller has the machine to itself before the next executor is started, while others are ready, in milliseconds. */
const refillAfterMs = 200;
/** Consecutive failed starts before waiting callers get the error. */
const attempts = 3;
/** An unused executor that is lost within this time, in milliseconds, counts as a failed start. */
const earlyMs = 10_000;

/**
 * Keeps executors started before they are needed. A caller leases one for exclusive use without waiting for its start;
 * with `maxUses: 1`, the default, the pool then discards it and starts a new one.
 *
 * Callers are served in order, and their number is limited. Executors that break down are replaced. If none can be
 * started, callers get the error, and the pool retries at growing intervals until it can.
 *
 * @example
 * const pool = new ExecutorPool({ create: () => new DockerCommandLineCodeExecutor(), min: 2, max: 8 });
 * process.once("SIGTERM", () => void pool.drain({ graceMs: 10_000 }));
 * await using lease = await pool.acquire({ signal: AbortSignal.timeout(30_000) });
 * await lease.executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 */
export class ExecutorPool implements AsyncDisposable {
  readonly #settings: PoolSettings;
  readonly #members = new Set<PoolMember>();
  readonly #ready: ReadyMembers;
  readonly #leases = new Set<LeaseRecord>();
  readonly #line = new WaitingLine<LeaseHolder>();
  readonly #starters = new WaitingLine<void>();
  readonly #known = new WeakSet<CodeExecutor>();
  readonly #pace = new RetryPace();
  readonly #drain = new Drain();
  readonly #forgotten: FinalizationRegistry<LeaseRecord>;
  #retry: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;

  /**
   * Starts nothing before the first `start()` or `acquire()`. @throws InvalidInputError if an option is unknown or
   * wrong.
   */
  constructor(options: ExecutorPoolOptions) {
    this.#settings = poolSettings(options);
    this.#ready = new ReadyMembers(this.#settings, (idle) => void this.#end(idle, leaseEnded("nobody used it")));
    this.#forgotten = new FinalizationRegistry((record) => {
      const forgotten = leaseEnded("it was garbage-collected without being released; use `await using`");
      void record.end(forgotten, { discard: true });
      this.#settings.onError(forgotten);
    });
  }

  /** The current number of executors and of waiting callers; also available as telemetry gauges. */
  get counts(): PoolCounts {
    const inState = (state: PoolMember["state"]): number =>
      [...this.#members].filter((member) => member.state === state).length;
    return {
      ready: inState("ready"),
      starting: inState("starting"),
      leased: inState("leased"),
      ending: inState("ending"),
      waiting: this.#line.length,
    };
  }

  /**
   * Fills the pool, and waits until `min` executors are started. Call it when a service starts, to see whether
   * executors start at all. Without it, the first `acquire()` starts to fill the pool.
   *
   * @throws what the start of an executor fails with.
   * @throws ExecutorStoppedError after `drain()`.
   * @throws `options.signal.reason` if the signal was aborted; the pool continues to fill.
   */
  async start(options: PoolStartOptions = {}): Promise<void> {
    const { signal } = checkOptions(poolStartOptions, options, "start");
    signal?.throwIfAborted();
    this.#drain.signal.throwIfAborted();
    if (this.#isFilled) return;
    const filled = this.#starters.wait(signal);
    this.#refill();
    await filled;
  }

  /**
   * Leases an executor for exclusive use: a ready one or, when it is this caller's turn, the next one that becomes
   * ready.
   *
   * @throws QuotaExceededError at once if all executors are in use and `maxWaiting` callers are already waiting.
   * @throws the error of an executor's start, if none can be started.
   * @throws ExecutorStoppedError after `drain()`.
   * @throws `options.signal.reason` if the signal was aborted.
   * @throws what `options.onLease` throws.
   */
  async acquire(options: AcquireOptions = {}): Promise<ExecutorLease> {
    const { signal, onLease } = checkOptions(acquireOptions, options, "acquire");
    return watchAcquire(this.#settings.name, async () => {
      signal?.throwIfAborted();
      this.#drain.signal.throwIfAborted();
      const ready = this.#ready.take();
      const holder = ready ? this.#lease(ready) : await this.#wait(signal);
      this.#refillSoon();
      if (onLease) holder.introduce(onLease);
      return holder.lease;
    });
  }

  /**
   * Ends all executors for good, for a service that shuts down. Waiting and new callers get `ExecutorStoppedError`;
   * leased executors may be used for another `graceMs`. Resolves when all executors are gone. A second call can shorten
   * the grace period.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    const rested = this.#drain.begin(options);
    const reason: unknown = this.#drain.signal.reason;
    clearTimeout(this.#retry);
    clearTimeout(this.#soon);
    this.#ready.close();
    this.#line.refuse(reason);
    this.#starters.refuse(reason);
    for (const member of this.#members) if (member.state !== "leased") void this.#end(member, reason);
    this.#changed();
    await rested;
    for (const lease of this.#leases) void lease.end(reason, { discard: true });
    await Promise.all([...this.#members].map((member) => this.#end(member, reason)));
  }

  /** Ends all executors at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain({ graceMs: 0 });
  }

  get #isFilled(): boolean {
    return this.#ready.length + this.#leases.size >= this.#settings.min;
  }

  async #wait(signal: AbortSignal | undefined): Promise<LeaseHolder> {
    const { max, maxWaiting } = this.#settings;
    if (this.#line.length >= maxWaiting + max - this.#leases.size) {
      throw new QuotaExceededError(
        `All ${max} executors of the pool are in use, and ${this.#line.length} callers are waiting`,
        {
          remedy: "Try again when one of them is free, or raise max or maxWaiting.",
        },
      );
    }
    const turn = this.#line.wait(signal);
    this.#refill();
    try {
      return await turn;
    } finally {
      this.#changed();
    }
  }

  #lease(member: PoolMember): LeaseHolder {
    const { maxLeaseMs, onError } = this.#settings;
    member.state = "leased";
    const record = new LeaseRecord(member.executor, (ended, discard) => this.#takeBack(member, ended, discard));
    record.limit(maxLeaseMs, onError);
    this.#leases.add(record);
    const holder = new LeaseHolder(record);
    this.#forgotten.register(holder, record, record);
    return holder;
  }

  /** Resolves when the executor is gone, or ready for its next caller. */
  async #takeBack(member: PoolMember, record: LeaseRecord, discard: boolean): Promise<void> {
    this.#leases.delete(record);
    this.#forgotten.unregister(record);
    member.uses += 1;
    const reason: unknown = record.signal.reason;
    if (discard || !member.isUsable || member.uses >= this.#settings.maxUses || this.#drain.signal.aborted) {
      await this.#end(member, reason);
      return;
    }
    member.state = "starting";
    this.#changed();
    if (await member.renew()) this.#offer(member);
    else await this.#end(member, reason);
  }

  /**
   * Starts the executors missing for waiting and next callers, as far as there is room, and not too soon after a
   * failure.
   */
  #refill(): void {
    this.#changed();
    if (this.#drain.signal.aborted) return;
    const { min, max } = this.#settings;
    const { starting } = this.counts;
    const wanted = min + this.#line.length - this.#ready.length - starting;
    // After a failure, one start is enough to see whether it works again.
    const atOnce = this.#pace.failures > 0 ? 1 : startsAtOnce;
    const count = Math.min(wanted, max - this.#members.size, atOnce - starting);
    if (count <= 0) return;
    const { pauseMs } = this.#pace;
    if (pauseMs > 0) {
      this.#tryAgainIn(pauseMs);
      return;
    }
    for (let started = 0; started < count; started += 1) this.#startOne();
    this.#changed();
  }

  /** Starts what is missing for next callers: what a caller does first should not wait for the start of another executor. */
  #refillSoon(): void {
    this.#changed();
    if (this.#ready.length === 0) {
      this.#refill();
      return;
    }
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#refill();
    }, refillAfterMs).unref();
  }

  #tryAgainIn(milliseconds: number): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#refill(), milliseconds);
    // A failing pool must not keep the program running, unless a caller is waiting.
    if (this.#line.length + this.#starters.length === 0) this.#retry.unref();
  }

  #startOne(): void {
    const member = new PoolMember({
      settings: this.#settings,
      known: this.#known,
      failuresBefore: this.#pace.failures,
      onLost: (lost) => this.#lost(lost),
    });
    this.#members.add(member);
    member.opened.then(
      () => this.#started(member),
      (error: unknown) => this.#failed(member, error),
    );
  }

  #started(member: PoolMember): void {
    if (member.isEnding) return;
    if (member.isUnwell) {
      const remedy = "Check its backend; the pool will retry.";
      this.#failed(member, new BackendUnavailableError("The executor broke down while it started", { remedy }));
      return;
    }
    this.#pace.succeeded();
    this.#offer(member);
  }

  #failed(member: PoolMember, error: unknown): void {
    if (member.isEnding) return;
    this.#pace.failed(member.begunAt);
    void this.#end(member, error);
    if (this.#line.length + this.#starters.length === 0) {
      if (this.#pace.failures === 1) this.#settings.onError(error);
      return;
    }
    // Retry what may soon work again, but not a mistake in `create`, or a start that timed out.
    const passes = BackendUnavailableError.isInstance(error) && !member.isLate && this.#pace.failures < attempts;
    if (passes) return;
    this.#line.refuse(error);
    this.#starters.refuse(error);
    this.#changed();
  }

  /** Gives an executor to the caller that has waited longest, or keeps it for the next. */
  #offer(member: PoolMember): void {
    if (!this.#line.give(() => this.#lease(member))) this.#ready.add(member);
    this.#refill();
  }

  #lost(member: PoolMember): void {
    // An executor that is starting or leased is checked when that is over.
    if (member.state !== "ready") return;
    const isEarly = member.uses === 0 && performance.now() - member.readySince < earlyMs;
    if (isEarly) this.#pace.lostEarly(member.failuresBefore);
    void this.#end(member, leaseEnded("the executor broke down"));
  }

  async #end(member: PoolMember, reason: unknown): Promise<void> {
    this.#ready.remove(member);
    const ended = member.end(reason);
    this.#changed();
    await ended;
    this.#members.delete(member);
    this.#refill();
  }

  #changed(): void {
    recordPoolCounts(this.#settings.name, this.counts);
    if (this.#leases.size === 0) this.#drain.rested();
    if (this.#isFilled) while (this.#starters.give(() => {}));
  }
}
