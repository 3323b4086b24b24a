import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { BackendUnavailableError, FencedError, SessionInUseError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import type {
  AcquiredSession,
  OccupiedSession,
  SessionDirectory,
  SessionHold,
  SessionMessage,
  SessionNote,
  SessionRequest,
} from "./session-directory.ts";
import { type LeaseOwner, SessionLease, takenReason } from "./session-lease.ts";

/** A lease is renewed when this part of it has passed; after a failure, it is tried again after the other part. */
const [renewAfter, retryAfter] = [1 / 3, 1 / 12];
/** Neither a call whose session is held nor a renewal waits for longer than this part of the lease for the directory. */
const updateWithin = 1 / 4;

/** How a process takes leases. */
export interface LeasesOptions {
  readonly directory: SessionDirectory;
  readonly leaseMs: number;
  /** How long to wait for a session that another process holds. */
  readonly waitMs: number;
  /** Whether sessions can move to another process with what they have. */
  readonly canMove: boolean;
  /** Receives errors that no caller waits for. */
  readonly onError: (error: unknown) => void;
}

/**
 * All leases of one process: takes them, renews all of them together, and ends those that were not renewed in time. Has
 * one timer, and one subscription to messages.
 */
export class Leases implements LeaseOwner {
  readonly owner: string = `${hostname()}:${process.pid}:${randomBytes(6).toString("hex")}`;
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, SessionLease>();
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Requests that were faster than the directory's answer that the key is held. */
  readonly #early = new Map<string, SessionRequest>();
  #listening: Promise<() => Promise<void>> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #renewAt = 0;
  #isRenewing = false;
  #hasFailed = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /**
   * Takes the lease of a key. If another process holds it, asks for it, and waits.
   *
   * @throws SessionInUseError if the other process does not hand it over.
   * @throws BackendUnavailableError if the directory does not answer.
   */
  async take(key: string, request: SessionRequest, signal: AbortSignal | undefined): Promise<SessionLease> {
    const { waitMs, canMove } = this.#options;
    await untilAborted(this.#listen(), signal);
    const deadline = performance.now() + waitMs;
    for (;;) {
      // Before it asks: the answer may be there at once.
      const free = this.#whenFree(key);
      try {
        const sentAt = performance.now();
        const answer = await this.#acquire(key, request, signal);
        if (answer.isHeld) {
          const lease = this.#leaseOf(key, answer, sentAt);
          if (lease) return lease;
          continue;
        }
        const left = deadline - performance.now();
        const canWait = canMove || request === "end" || answer.owner === this.owner;
        if (!canWait || left <= 0) throw inUse(key, answer.owner, canWait ? waitMs : undefined);
        await untilAborted(within(Math.min(left, answer.leaseMs + 1), free.promise), signal);
      } finally {
        free.leave();
      }
    }
  }

  async update(hold: SessionHold, note: SessionNote): Promise<boolean> {
    const { directory, leaseMs } = this.#options;
    return this.#answerOf(directory.update(hold, note), leaseMs * updateWithin);
  }

  async release(lease: SessionLease, note: SessionNote | undefined): Promise<boolean> {
    try {
      // Others can have it anyway when the lease has ended.
      return await this.#answerOf(this.#options.directory.release(lease.hold, note));
    } catch (error) {
      this.#options.onError(error);
      return false;
    } finally {
      if (this.#held.get(lease.hold.key) === lease) this.#held.delete(lease.hold.key);
    }
  }

  /** Ends the subscription to messages. */
  async close(): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    clearTimeout(this.#timer);
    if (!listening) return;
    try {
      await this.#answerOf(listening.then((end) => end()));
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #leaseOf(key: string, answer: AcquiredSession, sentAt: number): SessionLease | undefined {
    const hold = { key, owner: this.owner, token: answer.token };
    const lease = new SessionLease(hold, answer, { until: sentAt + answer.leaseMs, owner: this });
    if (lease.over !== undefined) {
      // The answer took so long that it says nothing any more.
      void lease.release(lease.unopened);
      return undefined;
    }
    this.#held.set(key, lease);
    const early = this.#early.get(key);
    this.#early.delete(key);
    if (early) lease.ask(early);
    if (this.#timer === undefined) {
      this.#renewAt = sentAt + this.#options.leaseMs * renewAfter;
      this.#watch();
    }
    return lease;
  }

  async #acquire(
    key: string,
    request: SessionRequest,
    signal: AbortSignal | undefined,
  ): Promise<AcquiredSession | OccupiedSession> {
    const { directory, leaseMs } = this.#options;
    const asking = Promise.resolve(directory.acquire(key, { owner: this.owner, leaseMs, request }));
    try {
      return await untilAborted(this.#answerOf(asking), signal);
    } catch (error) {
      // An answer that nobody waits for must not keep others waiting.
      asking.then((late) => (late.isHeld ? this.#leaveTo(key, late) : undefined)).catch(() => {});
      throw error;
    }
  }

  async #leaveTo(key: string, found: AcquiredSession): Promise<void> {
    const hold = { key, owner: this.owner, token: found.token };
    const lease = new SessionLease(hold, found, { until: Infinity, owner: this });
    await this.#options.directory.release(hold, lease.unopened);
  }

  /** Waits for the directory's answer, for as long as an answer can be of use. */
  async #answerOf<T>(asking: Promise<T>, limitMs: number = this.#options.leaseMs): Promise<T> {
    try {
      const answer = await within(
        limitMs,
        asking.then((value) => ({ value })),
      );
      if (answer) return answer.value;
    } catch (error) {
      throw FencedError.isInstance(error) ? error : unavailable("cannot be reached", error);
    }
    throw unavailable(`did not answer within ${limitMs} ms`);
  }

  #listen(): Promise<unknown> {
    if (this.#listening) return this.#answerOf(this.#listening);
    // One attempt, however many calls wait for it: a client may try to connect for ever.
    const listening = this.#options.directory.listen(this.owner, (message) => this.#receive(message));
    this.#listening = listening;
    listening.catch(() => {
      if (this.#listening === listening) this.#listening = undefined;
    });
    return this.#answerOf(listening);
  }

  #receive({ key, event }: SessionMessage): void {
    const waiting = this.#waiting.get(key);
    if (event === "released") for (const wake of waiting ?? []) wake();
    else if (this.#held.has(key)) this.#held.get(key)?.ask(event);
    else if (waiting) this.#early.set(key, event);
  }

  #whenFree(key: string): { readonly promise: Promise<void>; readonly leave: () => void } {
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    let wake: () => void = () => {};
    const promise = new Promise<void>((resolve) => {
      wake = resolve;
    });
    waiting.add(wake);
    const leave = (): void => {
      waiting.delete(wake);
      if (waiting.size > 0 || this.#waiting.get(key) !== waiting) return;
      this.#waiting.delete(key);
      this.#early.delete(key);
    };
    return { promise, leave };
  }

  /** Waits until a lease has to be renewed, or ends. */
  #watch(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const ends = [...this.#held.values()].map(({ until }) => until);
    const nextEnd = ends.reduce((one, other) => Math.min(one, other), Infinity);
    if (nextEnd === Infinity) return;
    const next = this.#isRenewing ? nextEnd : Math.min(nextEnd, this.#renewAt);
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, next - performance.now()));
    // The timer must not keep the program running.
    this.#timer.unref();
  }

  #tick(): void {
    const now = performance.now();
    for (const lease of this.#held.values()) if (lease.over !== undefined) this.#endOf(lease, lease.over);
    if (!this.#isRenewing && now >= this.#renewAt) void this.#renew();
    this.#watch();
  }

  async #renew(): Promise<void> {
    const { directory, leaseMs, onError } = this.#options;
    const leases = [...this.#held.values()].filter(({ until }) => until !== Infinity);
    if (leases.length === 0) return;
    const sentAt = performance.now();
    this.#isRenewing = true;
    try {
      const holds = leases.map(({ hold }) => hold);
      // Soon enough to be tried again, should there be no answer.
      const asking = directory.renew(holds, { owner: this.owner, leaseMs });
      const renewed = await this.#answerOf(asking, leaseMs * updateWithin);
      const byKey = new Map(renewed.map((one) => [one.key, one]));
      for (const lease of leases) {
        const found = byKey.get(lease.hold.key);
        if (found?.token !== lease.hold.token) this.#endOf(lease, takenReason);
        // One that has ended meanwhile stays so: its calls have been rejected.
        else if (lease.over === undefined) lease.until = sentAt + leaseMs;
        if (found?.request !== undefined) lease.ask(found.request);
      }
      this.#renewAt = sentAt + leaseMs * renewAfter;
      this.#hasFailed = false;
    } catch (error) {
      this.#renewAt = performance.now() + leaseMs * retryAfter;
      if (!this.#hasFailed) onError(error);
      this.#hasFailed = true;
    } finally {
      this.#isRenewing = false;
      this.#watch();
    }
  }

  #endOf(lease: SessionLease, reason: string): void {
    if (this.#held.get(lease.hold.key) === lease) this.#held.delete(lease.hold.key);
    lease.end(reason);
  }
}

function inUse(key: string, owner: string, waitedMs: number | undefined): SessionInUseError {
  const session = `The session ${JSON.stringify(key.slice(0, 100))} is held by another process, ${owner}`;
  if (waitedMs === undefined) {
    return new SessionInUseError(session, {
      remedy: "Send the calls of this key to that process, or pass `checkpoints`, with which sessions move.",
      option: "checkpoints",
    });
  }
  return new SessionInUseError(`${session}, which did not hand it over within ${waitedMs} ms`, {
    remedy: "Try again when its call there has ended, or raise handoverTimeoutMs.",
    option: "handoverTimeoutMs",
  });
}

function unavailable(what: string, cause?: unknown): BackendUnavailableError {
  return new BackendUnavailableError(`The session directory ${what}`, {
    remedy: "Check that its server (Redis or PostgreSQL) runs and can be reached from here, and try again.",
    ...(cause === undefined ? {} : { cause }),
  });
}
