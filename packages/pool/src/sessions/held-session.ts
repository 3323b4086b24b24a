import type { CodeExecutor } from "@fenced/core";
import type { SessionNote } from "../directory/session-directory.ts";
import type { SessionLease } from "../directory/session-lease.ts";
import { OwnedExecutor } from "../owned-executor.ts";
import type { ExecutorSessionsOptions } from "./executor-sessions-options.ts";
import { SessionCheckpoints } from "./session-checkpoints.ts";
import { SessionOpening } from "./session-opening.ts";
import { canBeLeft, leave, noteHandle } from "./session-place.ts";

/** What is left of a session after its end. */
export interface Ending {
  /** Forgets everything, its checkpoint included. */
  readonly forgets?: boolean;
  /** Leaves its place to another process. */
  readonly detaches?: boolean;
  /** Why its state is lost, for its next user. */
  readonly lost?: string | undefined;
}

/** What a held session does. */
export interface HeldSessionEvents {
  /** Aborted when the session ends. */
  readonly signal: AbortSignal;
  readonly onCreated: (executor: CodeExecutor) => void;
  readonly onError: (error: unknown) => void;
}

/** A session that this process holds: its lease, its executor, and what the directory and the store keep of it. */
export class HeldSession {
  /** Resolves to the started executor, and what is missing in it that nobody has told its users. */
  readonly opened: Promise<{ readonly executor: CodeExecutor; readonly lost: string | undefined }>;
  readonly #lease: SessionLease;
  readonly #events: HeldSessionEvents;
  readonly #stopTimeoutMs: number;
  readonly #checkpoints: SessionCheckpoints | undefined;
  readonly #owned: OwnedExecutor;
  readonly #opening: SessionOpening;
  #executor: CodeExecutor | undefined;
  #isOpen = false;
  #isForgotten = false;

  /** @throws InvalidInputError if the session cannot come back here. */
  constructor(lease: SessionLease, options: ExecutorSessionsOptions, events: HeldSessionEvents) {
    const { checkpoints: store, startTimeoutMs, stopTimeoutMs = 60_000 } = options;
    const { signal, onCreated, onError } = events;
    this.#lease = lease;
    this.#events = events;
    this.#stopTimeoutMs = stopTimeoutMs;
    this.#checkpoints = store && new SessionCheckpoints({ lease, store, limitMs: stopTimeoutMs, onError });
    this.#opening = new SessionOpening(lease, options);
    this.#owned = new OwnedExecutor({
      create: (starting) => this.#opening.create(starting),
      onCreated,
      prepare: async (executor) => this.#opening.check(executor),
      letGo: (executor) => this.#letGo(executor),
      startTimeoutMs,
      stopTimeoutMs,
      signal,
      onError,
    });
    this.opened = this.#open();
    // Callers that wait for it see the failure.
    this.opened.catch(() => {});
  }

  /** See `OwnedExecutor.isMade`. */
  get isMade(): boolean {
    return this.#owned.isMade;
  }

  /** Why this process no longer has the session for certain; `undefined` while it has. */
  get over(): string | undefined {
    return this.#lease.over;
  }

  /** Whether its place outlives this process. */
  get canBeLeft(): boolean {
    return this.#executor !== undefined && canBeLeft(this.#executor);
  }

  /** Takes a checkpoint, if sessions have any. @returns false if the session cannot be kept. Never rejects. */
  async keep(): Promise<boolean> {
    if (!this.#executor) return false;
    try {
      await this.#checkpoints?.take(this.#executor);
      return this.over === undefined;
    } catch (error) {
      this.#events.onError(error);
      return false;
    }
  }

  /** Call this when a result has told what is lost: the next one need not, wherever it is. */
  told(): void {
    this.#lease.told();
  }

  /** Keeps the way to its place up to date. Never rejects: what the directory has is the best that another process gets. */
  async noteHandle(): Promise<void> {
    if (!this.#executor) return;
    try {
      await noteHandle(this.#executor, this.#lease);
    } catch (error) {
      this.#events.onError(error);
    }
  }

  /**
   * Ends everything, and then lets others have the key.
   *
   * @param ending - `lost`: as it is told to the next user.
   * @returns true if the directory has recorded that nothing is kept of it. Never rejects.
   */
  async end({ forgets = false, detaches = false, lost }: Ending): Promise<boolean> {
    this.#isForgotten = forgets;
    const isLeft = detaches && this.#executor !== undefined && (await leave(this.#executor, this.#limits()));
    await this.#owned.dispose();
    const lostHere = detaches && this.#executor && !isLeft ? "The session could not be left to another process." : lost;
    // A place to which nobody has connected yet goes on, so it must stay known.
    const isUnreached = this.#executor === undefined && this.#lease.note.handle !== undefined;
    const isGone = forgets && !isUnreached;
    const note = isGone ? forgotten(lost) : this.#noteAfter(lostHere, isLeft);
    const isRecorded = await this.#lease.release(note);
    // Not before: if another process has the session, or gets it, its record says that there are some.
    if (isGone && isRecorded) await this.#checkpoints?.deleteAll();
    return isRecorded && note === undefined;
  }

  /** Ends the executor, unless it is in a place that was left by another process, and was never opened by this one. */
  async #letGo(executor: CodeExecutor): Promise<void> {
    const isKept = this.#opening.isConnected && !this.#isOpen && !this.#isForgotten && canBeLeft(executor);
    if (isKept) await leave(executor, this.#limits());
    else await executor[Symbol.asyncDispose]();
  }

  #limits(): { readonly limitMs: number; readonly onError: (error: unknown) => void } {
    return { limitMs: this.#stopTimeoutMs, onError: this.#events.onError };
  }

  async #open(): Promise<{ executor: CodeExecutor; lost: string | undefined }> {
    const executor = await this.#owned.opened;
    this.#executor = executor;
    // Before anything is done in it: this process may be killed at any time.
    if (canBeLeft(executor)) await noteHandle(executor, this.#lease);
    else if (this.#lease.note.handle) await this.#lease.update({ handle: undefined });
    this.#isOpen = true;
    return { executor, lost: this.#opening.lost(executor) };
  }

  #noteAfter(lost: string | undefined, isLeft: boolean): SessionNote {
    // One that was not opened is left as it was found.
    if (!this.#executor || (this.#opening.isConnected && !this.#isOpen)) return this.#lease.unopened;
    return { ...this.#lease.note, ...(!isLeft && { handle: undefined }), lost };
  }
}

function forgotten(lost: string | undefined): SessionNote | undefined {
  return lost === undefined ? undefined : { lost };
}
