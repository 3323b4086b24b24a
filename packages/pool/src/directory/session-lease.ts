import type { AcquiredSession, SessionHold, SessionNote, SessionRequest } from "./session-directory.ts";

/** What a lease needs of the `Leases` that it belongs to. */
export interface LeaseOwner {
  /** See `SessionDirectory.update`. */
  update(hold: SessionHold, note: SessionNote): Promise<boolean>;
  /** See `SessionDirectory.release`; never rejects: an answer that does not come is false. The lease is over then. */
  release(lease: SessionLease, note: SessionNote | undefined): Promise<boolean>;
}

/** What happens to a lease from outside. */
export interface LeaseListener {
  /** Another process asks for the session. May be called several times. */
  readonly onRequest: (request: SessionRequest) => void;
  /** It has ended before it was released. */
  readonly onOver: (reason: string) => void;
}

/** This process's hold on a key, from its start to its end. */
export class SessionLease {
  readonly hold: SessionHold;
  /** Why state is missing that only the end of the earlier hold explains; its users have not been told. */
  readonly abandoned: string | undefined;
  #until = 0;
  /** The same time as `Date.now()` counts. */
  #untilWall = 0;
  readonly #owner: LeaseOwner;
  #note: SessionNote;
  #over: string | undefined;
  #request: SessionRequest | undefined;
  #listener: LeaseListener | undefined;
  /** Its users have been told what the note says is lost. */
  #isTold = false;
  /** Resolves when the directory has answered all updates. */
  #updated: Promise<unknown> = Promise.resolve();
  #released: Promise<boolean> | undefined;

  constructor(hold: SessionHold, found: AcquiredSession, { until, owner }: { until: number; owner: LeaseOwner }) {
    this.hold = hold;
    this.abandoned = found.isAbandoned ? abandonedReason : undefined;
    this.until = until;
    this.#owner = owner;
    this.#note = found.note;
  }

  /** What the directory keeps of the session. */
  get note(): SessionNote {
    return this.#note;
  }

  /** The note of a session that was not opened, so that the next one finds what this one did. */
  get unopened(): SessionNote {
    return { ...this.#note, lost: this.#note.lost ?? this.abandoned };
  }

  /** When it ends unless it is renewed, as `performance.now()` counts. */
  get until(): number {
    return this.#until;
  }

  set until(until: number) {
    this.#until = until;
    this.#untilWall = Date.now() + (until - performance.now());
  }

  /** Why it is over; `undefined` while this process has the session for certain. */
  get over(): string | undefined {
    // A process that was stopped may come here before its timers do. On some systems, `performance.now()` does not count
    // while the machine sleeps, and the other clock can be set: the first that says so is believed.
    const isLate = performance.now() >= this.#until || Date.now() >= this.#untilWall;
    return this.#over ?? (isLate ? lateReason : undefined);
  }

  /** Call this when a result has told what the note says is lost. */
  told(): void {
    this.#isTold = true;
  }

  /** Tells the listener what happens, and what has happened. */
  listen(listener: LeaseListener): void {
    this.#listener = listener;
    if (this.#request) listener.onRequest(this.#request);
    if (this.#over !== undefined) listener.onOver(this.#over);
  }

  /** Another process asks for the session. */
  ask(request: SessionRequest): void {
    this.#request = request;
    this.#listener?.onRequest(request);
  }

  /** Ends it. Idempotent. */
  end(reason: string): void {
    if (this.#over !== undefined || this.#released) return;
    this.#over = reason;
    this.#listener?.onOver(reason);
  }

  /** Changes what is kept of the session. @returns false if the lease is over. */
  update(changes: SessionNote): Promise<boolean> {
    // One after another: each writes the whole note, with what the one before has changed.
    const updating = this.#updated.then(() => this.#update(changes));
    this.#updated = updating.catch(() => {});
    return updating;
  }

  /**
   * Frees the key.
   *
   * @param note - what is kept; `undefined`: nothing.
   * @returns whether the directory has recorded it. Never rejects.
   */
  release(note: SessionNote | undefined): Promise<boolean> {
    this.#released ??= this.#owner.release(this, note);
    return this.#released;
  }

  async #update(changes: SessionNote): Promise<boolean> {
    if (this.over !== undefined) return false;
    const note = { ...this.#note, ...(this.#isTold && { lost: undefined }), ...changes };
    const isDone = await this.#owner.update(this.hold, note);
    if (isDone) this.#note = note;
    else this.end(takenReason);
    return isDone;
  }
}

/** Why a process that did not answer for too long has lost its sessions. */
const lateReason = "This process could not renew its hold on the session in time, so another process may have it now.";
/** Why a process has lost a session that another one has. */
export const takenReason = "Another process has taken the session, because this one did not renew its hold in time.";
const abandonedReason = "The process that held the session ended, or lost its connection, without handing it over.";
