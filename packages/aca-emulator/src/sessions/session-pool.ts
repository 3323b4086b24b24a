import { randomUUID } from "node:crypto";
import path from "node:path";
import { ServiceFailure } from "../service-failure.ts";
import type { SessionProcessSpec } from "./session-process.ts";
import { Session } from "./session.ts";

/** The rules of a pool. */
export interface PoolRules extends Omit<SessionProcessSpec, "directory"> {
  /** Where to create the sessions' directories. */
  readonly root: string;
  /** Where uploads wait until they are complete. */
  readonly uploads: string;
  readonly maxSessions: number;
  readonly cooldownMs: number;
}

/** Gives each identifier a session, as long as there is room. */
export class SessionPool {
  readonly #rules: PoolRules;
  readonly #sessions = new Map<string, Session>();
  readonly #expired = new Set<string>();
  /** Sessions that are ending: they hold their slot until they are dead. */
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(rules: PoolRules) {
    this.#rules = rules;
  }

  get identifiers(): string[] {
    return [...this.#sessions.keys()];
  }

  /**
   * The identifier's session, created if it has none.
   *
   * @throws ServiceFailure if its session has expired, or if the pool is full.
   */
  allocate(identifier: string): Session {
    const session = this.#sessions.get(identifier) ?? this.#make(identifier);
    session.touch();
    return session;
  }

  /** @throws ServiceFailure if the identifier has no session. */
  existing(identifier: string): Session {
    const session = this.#sessions.get(identifier);
    if (!session) throw notFound(identifier);
    session.touch();
    return session;
  }

  /** Ends a session; resolves when its processes are dead. The identifier may be reused. */
  async delete(identifier: string): Promise<void> {
    const session = this.#sessions.get(identifier);
    if (!session) throw notFound(identifier);
    this.#sessions.delete(identifier);
    await this.#end(session);
  }

  /** Ends a session as its cooldown would: the identifier is refused from then on. */
  async expire(identifier: string): Promise<void> {
    const session = this.#sessions.get(identifier);
    if (!session) return;
    this.#sessions.delete(identifier);
    this.#expired.add(identifier);
    await this.#end(session);
  }

  /** Ends all sessions, and creates no more. */
  async end(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.identifiers.map((identifier) => this.delete(identifier)));
    await Promise.all(this.#ending);
  }

  #make(identifier: string): Session {
    // A request that a fault has delayed may arrive after the end, and nothing would end a session created for it.
    if (this.#closed) throw new ServiceFailure(503, "Stopped", "The emulator was stopped.");
    if (this.#expired.has(identifier)) throw notFound(identifier);
    if (this.#sessions.size + this.#ending.size >= this.#rules.maxSessions) {
      const message = `The pool's ${this.#rules.maxSessions} sessions are all in use.`;
      throw new ServiceFailure(429, "MaximumConcurrentSessionsReached", message, { "retry-after": "1" });
    }
    const { root, uploads, cooldownMs, maxSessions: _, ...spec } = this.#rules;
    const session = new Session(
      identifier,
      { ...spec, directory: path.join(root, randomUUID()) },
      { cooldownMs, uploads, expire: () => void this.expire(identifier) },
    );
    this.#sessions.set(identifier, session);
    return session;
  }

  async #end(session: Session): Promise<void> {
    const ending = session.end();
    this.#ending.add(ending);
    try {
      await ending;
    } finally {
      this.#ending.delete(ending);
    }
  }
}

function notFound(identifier: string): ServiceFailure {
  return new ServiceFailure(400, "SessionWithIdentifierNotFound", `There is no session ${identifier}.`);
}
