import type { SessionHandle } from "@fenced/core";

/** What a directory keeps of a session besides who holds it. */
export interface SessionNote {
  /** How to connect to the place where its code runs. May contain a secret. */
  readonly handle?: SessionHandle | undefined;
  /** The id of its last checkpoint. */
  readonly checkpoint?: string | undefined;
  /** Why state is missing that its users may expect, if they have not been told. */
  readonly lost?: string | undefined;
}

/** A hold on a session's key. Everything that is done with it is refused once another hold has a higher token. */
export interface SessionHold {
  readonly key: string;
  /** The process that holds it. Unique: never used again by another one. */
  readonly owner: string;
  /** Fencing token: each hold on a key has a higher one than all earlier holds. */
  readonly token: number;
}

/** What to do about a session that another process holds. */
export type SessionRequest = "hand-over" | "end";

/** The key was free, and is held now. */
export interface AcquiredSession {
  readonly isHeld: true;
  readonly token: number;
  /** How long the hold lasts from the moment of the request unless it is renewed, in milliseconds; `Infinity`: until it is released. */
  readonly leaseMs: number;
  /** What is known of the session; empty for a new key. */
  readonly note: SessionNote;
  /** An earlier hold has ended without being released: its process died, was stopped, or lost its connection. */
  readonly isAbandoned: boolean;
}

/** Another process holds the key. */
export interface OccupiedSession {
  readonly isHeld: false;
  readonly owner: string;
  /** How long that hold still lasts if it is not renewed, in milliseconds. */
  readonly leaseMs: number;
}

/** What a process is told about a key: that another one wants it, or that it is free. */
export interface SessionMessage {
  readonly key: string;
  readonly event: SessionRequest | "released";
}

/** What `renew` says of a hold that goes on. */
export interface RenewedSession {
  readonly key: string;
  readonly token: number;
  /** Another process has asked for it. */
  readonly request?: SessionRequest | undefined;
}

/**
 * Says which process holds the session of which key, for `ExecutorSessions` in several processes. A hold is a lease: it
 * ends by itself, by the directory's clock, unless it is renewed. Each method is one atomic step.
 *
 * Methods reject if the directory cannot be reached.
 */
export interface SessionDirectory {
  /**
   * Takes a key unless another process holds it. If one does, it is told what is requested, and the caller is told when
   * the key is free.
   */
  acquire(
    key: string,
    options: { readonly owner: string; readonly leaseMs: number; readonly request: SessionRequest },
  ): Promise<AcquiredSession | OccupiedSession>;

  /** Renews all these holds of one process. @returns those that go on; the others are over. */
  renew(
    holds: readonly SessionHold[],
    options: { readonly owner: string; readonly leaseMs: number },
  ): Promise<readonly RenewedSession[]>;

  /** Replaces what is kept of a session. @returns false if the hold is over: nothing has changed then. */
  update(hold: SessionHold, note: SessionNote): Promise<boolean>;

  /**
   * Frees the key, and tells those who wait for it.
   *
   * @param note - what is kept of the session. `undefined`: nothing, it is over.
   * @returns false if the hold is over: nothing has changed then.
   */
  release(hold: SessionHold, note: SessionNote | undefined): Promise<boolean>;

  /**
   * Calls `listener` with messages to a process. They may be lost: a process that waits asks again when the lease
   * that it waits for should have ended, and `renew` repeats requests.
   *
   * @returns a function that ends it.
   */
  listen(owner: string, listener: (message: SessionMessage) => void): Promise<() => Promise<void>>;
}
