import { randomUUID } from "node:crypto";
import type { SessionApi } from "../api/session-api.ts";
import { explainError } from "../http/explain-error.ts";
import { isSessionGone } from "../http/service-error.ts";
import { CarriedFiles } from "./carried-files.ts";
import { RemoteSession, type SessionSettings } from "./remote-session.ts";
import type { ScratchDirectory } from "./scratch-directory.ts";

/** The service's session, or its successor after it was given up or lost. */
export class SessionPlace {
  /** Called at once when the session has to be prepared again, or replaced: its variables and functions are gone. */
  onLost: (reason: string) => void = () => {};
  readonly #settings: SessionSettings;
  readonly #scratch: ScratchDirectory;
  #session: RemoteSession;
  #carried: CarriedFiles | undefined;
  #ready: Promise<void> | undefined;
  #replacing: Promise<void> | undefined;

  constructor(settings: SessionSettings, scratch: ScratchDirectory, identifier: string | undefined) {
    this.#settings = settings;
    this.#scratch = scratch;
    this.#session = new RemoteSession(settings, identifier ?? newIdentifier());
  }

  /** The session, ready or not. */
  get current(): RemoteSession {
    return this.#session;
  }

  get identifier(): string {
    return this.#session.api.identifier;
  }

  /** The session, prepared if it is not ready; retries if that failed before. */
  async session(signal?: AbortSignal): Promise<RemoteSession> {
    if (!this.#ready) this.#become(this.#prepare(signal));
    await this.#ready;
    return this.#session;
  }

  /**
   * Call this when a session is gone with everything in it, or its interpreter died (`bare`) and it still has its
   * identifier, its slot and its files. Several calls may notice that. The next one prepares a session again.
   *
   * @returns what happened to it.
   */
  leave(lost: RemoteSession, state: "bare" | "gone"): string {
    const reason =
      state === "gone"
        ? "The pool's session is gone; a new one replaces it"
        : "The interpreter of the pool's session died";
    if (!this.holds(lost)) return reason;
    if (state === "gone") this.#session = new RemoteSession(this.#settings, newIdentifier());
    this.#ready = undefined;
    this.onLost(reason);
    return reason;
  }

  /** Whether blocks still run in this session, because it was not replaced and is not about to be. */
  holds(session: RemoteSession): boolean {
    return this.#session === session && this.#replacing === undefined;
  }

  /** Makes a call that is safe to repeat, in another session if this one turns out to be gone. */
  async use<T>(call: (api: SessionApi) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const session = await this.session(signal);
    return call(session.api).catch(async (error: unknown) => {
      if (!isSessionGone(error)) throw error;
      this.leave(session, "gone");
      const next = await this.session(signal).catch((failure: unknown) => {
        // The reason why no new session could be created must not be mistaken for an answer about a file.
        throw explainError(failure);
      });
      return call(next.api);
    });
  }

  /**
   * Ends a session and everything that runs in it, and carries its files into another one. If another block has
   * caused this already, waits for that to finish.
   *
   * @param useLog - called with the log of the last block, a file of this host, while it exists.
   */
  async replace(given: RemoteSession, useLog: (log: string) => Promise<void> = async () => {}): Promise<void> {
    if (this.holds(given)) {
      this.#replacing = this.#replace(useLog).finally(() => {
        this.#replacing = undefined;
      });
      this.#become(this.#replacing);
    }
    await (this.#replacing ?? this.session());
  }

  async #replace(useLog: (log: string) => Promise<void>): Promise<void> {
    const before = this.#session;
    // Files that are not stored yet are all there is: nothing runs in a session before it has them.
    const carried = this.#carried ?? (await this.#fetchFiles(before).catch(warn));
    await before.end();
    if (carried?.log !== undefined) await useLog(carried.log);
    this.#session = new RemoteSession(this.#settings, newIdentifier());
    this.#carried = carried;
    await this.#prepare();
  }

  async #fetchFiles({ api }: RemoteSession): Promise<CarriedFiles> {
    return CarriedFiles.fetch(api, await this.#scratch.path(), this.#settings.logName);
  }

  async #prepare(signal: AbortSignal = new AbortController().signal): Promise<void> {
    await this.#session.install(signal).catch(async (error: unknown) => {
      if (!isSessionGone(error)) throw error;
      // The service refuses an identifier whose session has expired; any other one will do.
      this.#session = new RemoteSession(this.#settings, newIdentifier());
      await this.#session.install(signal);
    });
    await this.#carried?.store(this.#session.api);
    await this.#carried?.remove();
    this.#carried = undefined;
  }

  #become(ready: Promise<void>): void {
    this.#ready = ready;
    ready.catch(() => {
      if (this.#ready === ready) this.#ready = undefined;
    });
  }
}

function newIdentifier(): string {
  return `fenced-${randomUUID()}`;
}

function warn(error: unknown): undefined {
  const reason = error instanceof Error ? error.message : String(error);
  process.emitWarning(`The files of a session could not be carried over into the next one: ${reason}`, {
    code: "FENCED_ACA",
  });
}
