import { ExecutorStoppedError, type StartOptions } from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions, type OptionSchemas, optionsSchema, signalOption } from "@fenced/core/options";
import PQueue from "p-queue";
import type * as z from "zod";
import type { CurrentPlace } from "./current-place.ts";
import type { Place } from "./place.ts";

/** What a session does at the beginning and the end of its life. */
export interface SessionMaker<P extends Place> {
  open(signal: AbortSignal): Promise<CurrentPlace<P>>;
  reset(current: CurrentPlace<P>, signal: AbortSignal): Promise<void>;
  close(current: CurrentPlace<P>, isDetached: boolean): Promise<void>;
}

const startOptions: z.ZodType<StartOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<StartOptions>);

/**
 * An executor's life cycle: anything that needs the session opens it until the first stop; from then on only `start`
 * does, and nothing after `dispose`. Sessions never overlap: one is closed before the next is opened.
 */
export class SessionLife<P extends Place> {
  readonly #maker: SessionMaker<P>;
  #epoch: Epoch<P> | undefined;
  #current: CurrentPlace<P> | undefined;
  #closing: Promise<void> = Promise.resolve();
  #ending = new AbortController();
  #disposed = false;

  constructor(maker: SessionMaker<P>) {
    this.#maker = maker;
  }

  /** The place of the open session; `undefined` while there is none. */
  get place(): P | undefined {
    return this.#current?.last;
  }

  /** Aborted with an `ExecutorStoppedError` by the next stop, but not by a restart. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** @throws ExecutorStoppedError after a stop. */
  open(): Epoch<P> {
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
      await epoch.opened(signal);
    } catch (error) {
      if (signal?.aborted === true && epoch.abandoned && this.#epoch === epoch) {
        if (before.signal.aborted) this.#ending = before;
        await this.#end();
      }
      throw error;
    }
  }

  /** @param isDetached - the place goes on, for another program. */
  stop(isDetached = false): Promise<void> {
    this.#ending.abort(stopped("The executor is stopped", "Call start() to use it again."));
    return this.#end(isDetached);
  }

  async restart(): Promise<void> {
    const old = this.#epoch;
    const current = this.#current;
    // A session that is still opening needs no reset.
    if (old?.isOpen === true && current) {
      const reset = async (signal: AbortSignal): Promise<CurrentPlace<P>> => {
        await this.#maker.reset(current, signal);
        return current;
      };
      this.#epoch = this.#newEpoch(reset, old.end());
    }
    await this.open().opened();
  }

  dispose(): Promise<void> {
    this.#disposed = true;
    return this.stop();
  }

  /** Waits for `use` of the place, but only until the next stop. Its files are there; blocks may not be able to run. */
  async withFiles<T>(use: (place: P) => Promise<T>): Promise<T> {
    const { signal } = this;
    const epoch = this.open();
    const { last } = await epoch.opened(signal);
    const place = last?.facts.filesStay === true ? last : await epoch.place(signal);
    return untilAborted(use(place), signal);
  }

  #end(isDetached = false): Promise<void> {
    const epoch = this.#epoch;
    if (epoch) {
      this.#epoch = undefined;
      this.#current?.stopping(isDetached);
      this.#closing = epoch.end().then(() => this.#close(isDetached));
    }
    return this.#closing;
  }

  /** @param before - resolves when a session may be opened or reset; it must not reject. */
  #newEpoch(
    open: (signal: AbortSignal) => Promise<CurrentPlace<P>>,
    before: Promise<void> = this.#closing.catch(() => {}),
  ): Epoch<P> {
    const epoch = new Epoch<P>(async (signal) => {
      await before;
      try {
        signal.throwIfAborted();
        this.#current = await open(signal);
        return this.#current;
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

  async #close(isDetached = false): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (current) await this.#maker.close(current, isDetached);
  }
}

function stopped(problem: string, remedy: string): ExecutorStoppedError {
  return new ExecutorStoppedError(problem, { remedy });
}

/** One period of an executor's life: from a start or restart to the next restart or stop. */
export class Epoch<P extends Place> {
  readonly turns: Turns = new Turns();
  readonly #ending = new AbortController();
  /** Aborted with an `ExecutorStoppedError` when the epoch ends. */
  readonly signal: AbortSignal = this.#ending.signal;
  /** Resolves when blocks can run; rejects if the session could not be opened or reset. */
  readonly #opened: Promise<CurrentPlace<P>>;
  #current: CurrentPlace<P> | undefined;
  readonly #runs = new Set<Promise<void>>();
  #waiting = 0;
  /** The functions that were set up, or are, in one place. */
  #functions: { readonly place: P; readonly setUps: Map<string, Promise<void>> } | undefined;
  #settingUp: Promise<void> = Promise.resolve();

  constructor(open: (signal: AbortSignal) => Promise<CurrentPlace<P>>) {
    // Deferred, so that the creator of this epoch can store it before `open` accesses it.
    this.#opened = Promise.resolve()
      .then(() => open(this.signal))
      .then((current) => (this.#current = current));
    // Callers that wait for the session see its failure; without any, it must not end the process.
    this.#opened.catch(() => {});
  }

  /** True if blocks can run, or could until the epoch ended. */
  get isOpen(): boolean {
    return this.#current !== undefined;
  }

  /** True if the session is not open and nobody waits for it. */
  get abandoned(): boolean {
    return this.#waiting === 0 && !this.isOpen;
  }

  /** The place, if blocks can run in it now, without a wait. */
  get usablePlace(): P | undefined {
    return this.#current?.usable;
  }

  /**
   * Waits until the session is open.
   *
   * @throws the epoch's or the given signal's reason if it is aborted first.
   */
  async opened(signal?: AbortSignal): Promise<CurrentPlace<P>> {
    const controller = new AbortController();
    const unfollow = followSignals(controller, [this.signal, signal]);
    this.#waiting += 1;
    try {
      return await untilAborted(this.#opened, controller.signal);
    } finally {
      this.#waiting -= 1;
      unfollow();
    }
  }

  /** Waits for a place in which blocks can run now. */
  async place(signal: AbortSignal): Promise<P> {
    const current = await this.opened(signal);
    return current.usable ?? untilAborted(current.ready(this.signal), signal);
  }

  /** Call this if a place turned out to be gone. */
  giveUp(place: Place, reason: string): void {
    this.#current?.giveUp(place, reason);
  }

  /** Counts something as running until it settles. */
  begin(running: Promise<unknown>): void {
    const ended = (): void => void this.#runs.delete(run);
    const run = running.then(ended, ended);
    this.#runs.add(run);
  }

  /**
   * Runs `setUp` before the first block with these functions in a place, and again for the next call if it failed.
   * Set-ups run one after another, because they share directories.
   *
   * @param which - identifies the functions.
   */
  setUpFunctionsOnce(place: P, which: string, setUp: () => Promise<void>): Promise<void> {
    if (this.#functions?.place !== place) this.#functions = { place, setUps: new Map() };
    const { setUps } = this.#functions;
    const known = setUps.get(which);
    if (known) return known;
    const made = this.#settingUp.then(setUp);
    setUps.set(which, made);
    this.#settingUp = made.catch(() => {
      if (setUps.get(which) === made) setUps.delete(which);
    });
    return made;
  }

  /** Resolves when the set-ups that have begun are over, even if their callers have left. */
  get functionsSettled(): Promise<void> {
    return this.#settingUp;
  }

  /** Aborts everything in progress and waits for its end. */
  async end(): Promise<void> {
    this.#ending.abort(
      new ExecutorStoppedError("The executor was stopped or restarted during this call", {
        remedy: "Call again if the code should still run; files that it was writing may be incomplete.",
      }),
    );
    await this.#opened.catch(() => {});
    await Promise.all(this.#runs);
  }
}

/** Admits one holder at a time, in order of arrival. */
class Turns {
  readonly #queue = new PQueue({ concurrency: 1 });

  /** True if the next one who asks need not wait. */
  get isFree(): boolean {
    return this.#queue.size + this.#queue.pending === 0;
  }

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
