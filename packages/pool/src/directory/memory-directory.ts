import type {
  AcquiredSession,
  OccupiedSession,
  RenewedSession,
  SessionDirectory,
  SessionHold,
  SessionMessage,
  SessionNote,
  SessionRequest,
} from "./session-directory.ts";

/** How many sessions that ended are remembered, so that their users are told what is lost. */
const mostForgettable = 10_000;

interface Entry {
  readonly note: SessionNote;
  readonly hold?: SessionHold | undefined;
  /** What has been requested of its holder, and by which processes. */
  readonly request?: SessionRequest | undefined;
  readonly waiting: ReadonlySet<string>;
}

/**
 * A directory in the memory of this process. Its holds last until they are released, since their holder cannot die before
 * the directory does. Give one to several `ExecutorSessions` to let them share keys.
 *
 * It remembers the last 10,000 ended sessions that have no checkpoint.
 */
export function memoryDirectory(): SessionDirectory {
  return new MemoryDirectory();
}

class MemoryDirectory implements SessionDirectory {
  readonly #entries = new Map<string, Entry>();
  /** Keys of free entries that can be forgotten, oldest first. */
  readonly #forgettable = new Set<string>();
  readonly #listeners = new Map<string, (message: SessionMessage) => void>();
  #lastToken = 0;

  async acquire(
    key: string,
    { owner, request }: { readonly owner: string; readonly request: SessionRequest },
  ): Promise<AcquiredSession | OccupiedSession> {
    const { note = {}, hold, waiting = [], request: earlier } = this.#entries.get(key) ?? {};
    if (hold) {
      const strongest = earlier === "end" ? earlier : request;
      this.#entries.set(key, { note, hold, request: strongest, waiting: new Set([...waiting, owner]) });
      this.#tell(hold.owner, { key, event: strongest });
      return { isHeld: false, owner: hold.owner, leaseMs: Infinity };
    }
    const token = (this.#lastToken += 1);
    this.#forgettable.delete(key);
    this.#entries.set(key, { note, hold: { key, owner, token }, waiting: new Set() });
    return { isHeld: true, token, leaseMs: Infinity, note, isAbandoned: false };
  }

  async renew(holds: readonly SessionHold[]): Promise<readonly RenewedSession[]> {
    return holds.flatMap((hold) => {
      const entry = this.#held(hold);
      return entry ? [{ key: hold.key, token: hold.token, request: entry.request }] : [];
    });
  }

  async update(hold: SessionHold, note: SessionNote): Promise<boolean> {
    const entry = this.#held(hold);
    if (entry) this.#entries.set(hold.key, { ...entry, note });
    return entry !== undefined;
  }

  async release(hold: SessionHold, note: SessionNote | undefined): Promise<boolean> {
    const { key } = hold;
    const entry = this.#held(hold);
    if (!entry) return false;
    if (note === undefined || Object.values(note).every((value) => value === undefined)) this.#entries.delete(key);
    else this.#keep(key, note);
    for (const owner of entry.waiting) this.#tell(owner, { key, event: "released" });
    return true;
  }

  async listen(owner: string, listener: (message: SessionMessage) => void): Promise<() => Promise<void>> {
    this.#listeners.set(owner, listener);
    return async () => {
      this.#listeners.delete(owner);
    };
  }

  #held({ key, owner, token }: SessionHold): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry?.hold?.owner === owner && entry.hold.token === token ? entry : undefined;
  }

  #keep(key: string, note: SessionNote): void {
    this.#entries.set(key, { note, waiting: new Set() });
    if (note.checkpoint !== undefined || note.handle !== undefined) return;
    this.#forgettable.add(key);
    const [oldest] = this.#forgettable;
    if (oldest === undefined || this.#forgettable.size <= mostForgettable) return;
    this.#forgettable.delete(oldest);
    this.#entries.delete(oldest);
  }

  #tell(owner: string, message: SessionMessage): void {
    // The listener may call the directory again.
    queueMicrotask(() => this.#listeners.get(owner)?.(message));
  }
}
