import { ExecutorStoppedError, type StartOptions } from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions, type OptionSchemas, optionsSchema, signalOption } from "@fenced/core/options";
import PQueue from "p-queue";
import type * as z from "zod";
import type { BackendSession } from "./backend-session.ts";

/** How a session is opened, reset and closed. */
export interface SessionMaker<Session extends BackendSession> {
  open(signal: AbortSignal): Promise<Session>;
  reset(session: Session, signal: AbortSignal): Promise<void>;
  close(session: Session): Promise<void>;
}

const startOptions: z.ZodType<StartOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<StartOptions>);

/**
 * An executor's life cycle: anything that needs the session opens it until the first stop; from then on only `start`
 * does, and nothing after `dispose`. Sessions never overlap: one is closed before the next is opened.
 */
export class SessionLife<Session extends BackendSession> {
  readonly #maker: SessionMaker<Session>;
  #epoch: Epoch<Session> | undefined;
  #session: Session | undefined;
  #closing: Promise<void> = Promise.resolve();
  #ending = new AbortController();
  #disposed = false;

  constructor(maker: SessionMaker<Session>) {
    this.#maker = maker;
  }

  /** The open session; `undefined` while there is none. */
  get session(): Session | undefined {
    return this.#session;
  }

  /** The current epoch, in which blocks run; `undefined` while there is none. */
  get epoch(): Epoch<Session> | undefined {
    return this.#epoch;
  }

  /** Aborted with an `ExecutorStoppedError` by the next stop, but not by a restart. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** @throws ExecutorStoppedError after a stop. */
  open(): Epoch<Session> {
    this.#ending.signal.throwIfAborted();
    this.#epoch ??= this.#newEpoch((signal) => this.#maker.open(signal));
    return this.#epoch;
  }

  async start(options: StartOptions): Promise<void> {
    const { signal } = checkOptions(startOptions, options, "start");
    signal?.throwIfAborted();
    if (this.#disposed) throw stopped("The executor was disposed of", "Create a new one.");
    const before = this.#ending;
    if (before.signal.aborted) this.#ending = new AbortController();
    const epoch = this.open();
    try {
      await epoch.waitForSession(signal);
    } catch (error) {
      if (signal?.aborted === true && epoch.abandoned && this.#epoch === epoch) {
        if (before.signal.aborted) this.#ending = before;
        await this.#end();
      }
      throw error;
    }
  }

  stop(): Promise<void> {
    this.#ending.abort(stopped("The executor is stopped", "Call start() to use it again."));
    return this.#end();
  }

  async restart(): Promise<void> {
    const old = this.#epoch;
    const session = this.#session;
    // A session that is still opening needs no reset.
    if (old?.opened === true && session) {
      const reset = async (signal: AbortSignal): Promise<Session> => {
        await this.#maker.reset(session, signal);
        return session;
      };
      this.#epoch = this.#newEpoch(reset, old.end());
    }
    await this.open().waitForSession();
  }

  dispose(): Promise<void> {
    this.#disposed = true;
    return this.stop();
  }

  /** Waits for `use` of the open session, but only until the next stop. */
  async withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
    const { signal } = this;
    const session = await this.open().waitForSession(signal);
    return untilAborted(use(session), signal);
  }

  #end(): Promise<void> {
    const epoch = this.#epoch;
    if (epoch) {
      this.#epoch = undefined;
      this.#session?.stopping?.();
      this.#closing = epoch.end().then(() => this.#close());
    }
    return this.#closing;
  }

  /** @param before - resolves when a session may be opened or reset; it must not reject. */
  #newEpoch(
    open: (signal: AbortSignal) => Promise<Session>,
    before: Promise<void> = this.#closing.catch(() => {}),
  ): Epoch<Session> {
    const epoch = new Epoch(async (signal) => {
      await before;
      try {
        signal.throwIfAborted();
        this.#session = await open(signal);
        return this.#session;
      } catch (error) {
        const closed = this.#close();
        if (this.#epoch === epoch) {
          this.#epoch = undefined;
          this.#closing = closed;
        }
        await closed;
        throw error;
      }
    });
    return epoch;
  }

  async #close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session) await this.#maker.close(session);
  }
}

function stopped(problem: string, remedy: string): ExecutorStoppedError {
  return new ExecutorStoppedError(problem, { remedy });
}

/**
 * One period of an executor's life: from a start or restart to the next restart or stop. A restart begins a new epoch
 * in the same `BackendSession`.
 */
export class Epoch<Session extends BackendSession> {
  /** Resolves to the session when blocks can run in it; rejects if it could not be opened or reset. */
  readonly session: Promise<Session>;
  #current: Session | undefined;
  readonly turns: Turns = new Turns();
  readonly #ending = new AbortController();
  /** Aborted with an `ExecutorStoppedError` when the epoch ends. */
  readonly signal: AbortSignal = this.#ending.signal;
  readonly #runs = new Set<Promise<void>>();
  readonly #functions = new Map<string, Promise<void>>();
  #settingUp: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(open: (signal: AbortSignal) => Promise<Session>) {
    // Deferred, so that the creator of this epoch can store it before `open` accesses it.
    this.session = Promise.resolve()
      .then(() => open(this.signal))
      .then((session) => {
        this.#current = session;
        return session;
      });
    // Callers that wait for the session see its failure; without any, it must not end the process.
    this.session.catch(() => {});
  }

  /** True if blocks can run, or could until the epoch ended. */
  get opened(): boolean {
    return this.#current !== undefined;
  }

  /** The session, if blocks can run in it now without a wait. */
  get readySession(): Session | undefined {
    const repaired = this.#current?.repair?.(this.signal);
    // Whoever waits for it sees its failure.
    repaired?.catch(() => {});
    return repaired ? undefined : this.#current;
  }

  /** True if the session is not open and nobody waits for it. */
  get abandoned(): boolean {
    return this.#waiting === 0 && !this.opened;
  }

  /**
   * Waits for the session.
   *
   * @throws the epoch's or the given signal's reason if it is aborted first.
   */
  async waitForSession(signal?: AbortSignal): Promise<Session> {
    const controller = new AbortController();
    const unfollow = followSignals(controller, [this.signal, signal]);
    this.#waiting += 1;
    try {
      return await untilAborted(this.session, controller.signal);
    } finally {
      this.#waiting -= 1;
      unfollow();
    }
  }

  /** Waits for the session, and for its repair if blocks cannot run in it now. */
  async repairedSession(signal: AbortSignal): Promise<Session> {
    const session = await this.waitForSession(signal);
    const repaired = session.repair?.(this.signal);
    if (repaired) await untilAborted(repaired, signal);
    return session;
  }

  /** Counts something as running until it settles. */
  begin(running: Promise<unknown>): void {
    const ended = (): void => void this.#runs.delete(run);
    const run = running.then(ended, ended);
    this.#runs.add(run);
  }

  /**
   * Runs `setUp` before the first block with these functions, and again for the next call if it failed. Set-ups run one
   * after another, because they share directories.
   *
   * @param which - identifies the functions.
   */
  setUpFunctionsOnce(which: string, setUp: () => Promise<void>): Promise<void> {
    const known = this.#functions.get(which);
    if (known) return known;
    const made = this.#settingUp.then(setUp);
    this.#functions.set(which, made);
    this.#settingUp = made.catch(() => {
      if (this.#functions.get(which) === made) this.#functions.delete(which);
    });
    return made;
  }

  /** Call this when the functions are gone, so that the next call sets them up again. */
  forgetFunctions(): void {
    this.#functions.clear();
  }

  /** Aborts everything in progress and waits for its end. */
  async end(): Promise<void> {
    this.#ending.abort(
      new ExecutorStoppedError("The executor was stopped or restarted during this call", {
        remedy: "Call again if the code should still run; files that it was writing may be incomplete.",
      }),
    );
    await this.session.catch(() => {});
    await Promise.all(this.#runs);
  }
}

/** Admits one holder at a time, in order of arrival. */
class Turns {
  readonly #queue = new PQueue({ concurrency: 1 });

  /**
   * Waits for its turn.
   *
   * @returns the function that ends the turn; it must be called.
   * @throws `signal.reason` if aborted while waiting.
   */
  async take(signal: AbortSignal): Promise<() => void> {
    const turn = new Promise<() => void>((begin) => {
      void this.#queue.add(async () => {
        await new Promise<void>((end) => {
          begin(end);
        });
      });
    });
    try {
      return await untilAborted(turn, signal);
    } catch (error) {
      // Nobody will use this turn, so end it as soon as it comes.
      void turn.then((end) => end());
      throw error;
    }
  }
}
