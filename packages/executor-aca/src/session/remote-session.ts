import { BackendUnavailableError } from "@fenced/core";
import { CurrentApi } from "../api/current-api.ts";
import { OlderApi } from "../api/older-api.ts";
import type { ExecutionAnswer, SessionApi } from "../api/session-api.ts";
import { currentVersion, olderVersion } from "../api/wire-types.ts";
import type { PoolClient } from "../http/pool-client.ts";
import { isSessionGone, ServiceError } from "../http/service-error.ts";
import { PumpLine } from "../pump/pump-line.ts";
import { type OfferedFunctions, pathInSession, type PoolLanguage } from "./pool-language.ts";

/** What all sessions of an executor share. */
export interface SessionSettings {
  readonly client: PoolClient;
  readonly version: string;
  readonly language: PoolLanguage;
  /** The name of the log of a block's output, in the session's root. */
  readonly logName: string;
  readonly functions: OfferedFunctions;
  /** Where a session's pump puts the socket of host functions; `undefined`: sessions have no pump. */
  readonly callsDirectory: string | undefined;
}

/**
 * The state of a session before a block: `ready`; `bare` if it answers, but with another interpreter than the one
 * that was prepared; or `gone`.
 */
export type SessionState = "ready" | "bare" | "gone";

/** How long the executor's own code may take, in milliseconds. */
const ownCodeTimeoutMs = 60_000;

/** One session of the pool, by its identifier. The first call creates it. */
export class RemoteSession {
  readonly api: SessionApi;
  readonly #settings: SessionSettings;
  #line: PumpLine | undefined;

  constructor(settings: SessionSettings, identifier: string) {
    const { client, version, language } = settings;
    this.#settings = settings;
    this.api =
      version === olderVersion
        ? new OlderApi(client, identifier)
        : new CurrentApi(client, identifier, { version, shell: language.capabilities.languages.includes("bash") });
  }

  /** The connection to the session's pump, once it is prepared; `undefined` if it has none. */
  get line(): PumpLine | undefined {
    return this.#line;
  }

  /** Prepares the session for blocks. */
  async install(signal: AbortSignal): Promise<void> {
    const { language, logName, callsDirectory: directory } = this.#settings;
    if (language.install === undefined) return;
    this.#line?.fail("its interpreter ended");
    const line =
      directory === undefined ? undefined : new PumpLine(this.api, { journal: pathInSession(logName), directory });
    const answer = await this.runOwn(`${language.install}${line?.install ?? ""}`, signal);
    line?.installed(answer);
    this.#line = line;
  }

  /** Prepares the next block. */
  async begin(env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<SessionState> {
    const { language, logName, functions } = this.#settings;
    const code = language.begin({ logName, env, functions });
    if (code === undefined) return "ready";
    try {
      const answer = await this.#execute(code, signal);
      if (answer.succeeded) return "ready";
      if (language.isLost(`${answer.stderr}\n${answer.error?.message ?? ""}`)) return "bare";
      throw failure(answer.stderr);
    } catch (error) {
      if (isSessionGone(error)) return "gone";
      throw error;
    }
  }

  /** Runs the executor's own code, which must be safe to run twice. */
  async runOwn(code: string, signal: AbortSignal): Promise<ExecutionAnswer> {
    const answer = await this.#execute(code, signal);
    if (!answer.succeeded) throw failure(answer.stderr);
    return answer;
  }

  /** Removes the executor's own file from a session that continues without it, if possible. */
  async leave(signal: AbortSignal): Promise<void> {
    const { language, logName } = this.#settings;
    if (this.#line) await this.runOwn(`__import__("sys").modules["__fenced__"].leave()`, signal).catch(() => {});
    if (language.hasLog) await this.api.removeFile(logName, signal).catch(() => {});
  }

  /** Ends the session and everything that runs in it. Does nothing if it is already gone. */
  async end(signal?: AbortSignal): Promise<void> {
    const { client, version } = this.#settings;
    // The older API has no call for it; the current one's works on the same sessions.
    const query = {
      "api-version": version === olderVersion ? currentVersion : version,
      identifier: this.api.identifier,
    };
    try {
      const call = { method: "DELETE", path: ["session"], query, repeatable: true, signal, last: true } as const;
      await client.send(call, ({ body }) => body.dump());
    } catch (error) {
      const gone =
        error instanceof ServiceError && (error.isSessionGone || (error.status === 404 && !error.isCapacity));
      if (!gone) throw error;
    }
  }

  #execute(code: string, signal: AbortSignal): ReturnType<SessionApi["execute"]> {
    return this.api.execute({ code, timeoutMs: ownCodeTimeoutMs, maxOutput: 1_048_576, repeatable: true, signal });
  }
}

function failure(stderr: string): BackendUnavailableError {
  return new BackendUnavailableError(`The session could not be prepared: ${stderr.trim().slice(-2000)}`, {
    remedy: "Restart the executor; if that does not help, check whether code in the session broke its interpreter.",
  });
}
