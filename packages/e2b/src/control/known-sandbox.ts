import { setMaxListeners } from "node:events";
import type { NetworkDenial } from "@fenced/core";
import { afterMs } from "@fenced/core/abort";
import * as z from "zod";
import { denialsOf, type EgressRules, egressRulesSchema } from "./egress-rules.ts";
import { newToken } from "./new-token.ts";
import type { Sandbox } from "./sandbox.ts";
import { type Reach, reachSchema } from "./template-network.ts";

/** What a sandbox was created with. */
export interface SandboxSettings {
  readonly id: string;
  /** As the client named it: a template's name, or a snapshot. */
  readonly templateId: string;
  /** The template whose executor it has. */
  readonly base: string;
  /** Who may see it: the digest of the API key that created it. */
  readonly owner: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Without it, `envd` asks for no token. */
  readonly isSecure: boolean;
  /** Anyone who knows its address can use the ports on which its programs listen; otherwise, a token is needed for them. */
  readonly allowPublicTraffic: boolean;
  /** The header `Host` that its programs get, with the port in place of `${PORT}`. Default: that of the client's request. */
  readonly maskRequestHost?: string | undefined;
  /** How long it lives, in milliseconds, if nobody changes that. */
  readonly timeoutMs: number;
  /** What happens when its time is up. */
  readonly onTimeout: "kill" | "pause";
  /** A request for it resumes it. */
  readonly autoResume: boolean;
}

/** A checkpoint that is kept. */
export interface Kept {
  readonly id: string;
  /** The size of its files, in bytes. */
  readonly bytes: number;
}

/** What is written down of a sandbox, so that the next server knows it. */
export interface SandboxRecord {
  readonly settings: SandboxSettings;
  readonly rules: EgressRules;
  readonly reach: Reach;
  readonly token?: string | undefined;
  readonly trafficToken: string;
  readonly startedAt: number;
  readonly endAt: number;
  readonly state: "running" | "paused";
  readonly checkpoint?: Kept | undefined;
}

const texts = z.record(z.string(), z.string());

/** A time that a `Date` can have, in milliseconds since 1970. */
export const momentSchema: z.ZodType<number> = z.int().min(0).max(8_640_000_000_000_000);

/** See `Kept`. */
export const keptSchema: z.ZodType<Kept> = z.object({ id: z.string(), bytes: z.number() });

/** See `SandboxRecord`. */
export const sandboxRecordSchema: z.ZodType<SandboxRecord> = z.object({
  settings: z.object({
    id: z.string(),
    templateId: z.string(),
    base: z.string(),
    owner: z.string(),
    metadata: texts,
    env: texts,
    isSecure: z.boolean(),
    // Absent in what older servers have written.
    allowPublicTraffic: z.boolean().default(true),
    maskRequestHost: z.string().optional(),
    timeoutMs: z.number(),
    onTimeout: z.enum(["kill", "pause"]),
    autoResume: z.boolean(),
  }),
  rules: egressRulesSchema,
  reach: reachSchema,
  token: z.string().optional(),
  trafficToken: z.string(),
  startedAt: momentSchema,
  endAt: momentSchema,
  state: z.enum(["running", "paused"]),
  checkpoint: keptSchema.optional(),
});

/** Something that happened to a sandbox. */
export interface LogEntry {
  readonly at: Date;
  readonly level: "info" | "warn";
  readonly message: string;
}

const mostEntries = 200;

/** A sandbox, running or paused, until it is killed. */
export class KnownSandbox {
  readonly settings: SandboxSettings;
  /** Its token for `envd`; `undefined` if it has none. */
  readonly token: string | undefined;
  readonly trafficToken: string;
  readonly startedAt: Date;
  /** When its time is up; while it is paused, when it was paused. */
  endAt: Date;
  state: "running" | "paused";
  /** With which it was paused. */
  checkpoint: Kept | undefined;
  /** What its client wants of the connections that it opens. */
  rules: EgressRules;
  /** How its network follows these rules, while it runs. */
  reach: Reach;
  /** While it runs and can be reached. */
  sandbox: Sandbox | undefined;
  /** Resolves when a server that has started anew has found it again. */
  opening: Promise<unknown> = Promise.resolve();
  readonly log: LogEntry[] = [];
  readonly #ending = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();
  #stopTime: () => void = () => {};

  constructor(record: SandboxRecord) {
    this.settings = record.settings;
    this.rules = record.rules;
    this.reach = record.reach;
    this.token = record.token;
    this.trafficToken = record.trafficToken;
    this.startedAt = new Date(record.startedAt);
    this.endAt = new Date(record.endAt);
    this.state = record.state;
    this.checkpoint = record.checkpoint;
    // Each request that waits for it listens.
    setMaxListeners(0, this.#ending.signal);
  }

  /** A new one, with new tokens. */
  static create(settings: SandboxSettings, rules: EgressRules): KnownSandbox {
    const now = Date.now();
    return new KnownSandbox({
      settings,
      rules,
      reach: "fixed",
      token: settings.isSecure ? newToken() : undefined,
      trafficToken: newToken(),
      startedAt: now,
      endAt: now + settings.timeoutMs,
      state: "running",
    });
  }

  /** Aborted when it is killed. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Its rules as a network policy denies. */
  get denials(): readonly NetworkDenial[] {
    return denialsOf(this.rules);
  }

  /** See `SandboxRecord`. */
  get record(): SandboxRecord {
    const { settings, rules, reach, token, trafficToken, startedAt, endAt, state, checkpoint } = this;
    return {
      settings,
      rules,
      reach,
      trafficToken,
      state,
      startedAt: startedAt.getTime(),
      endAt: endAt.getTime(),
      ...(token !== undefined && { token }),
      ...(checkpoint && { checkpoint }),
    };
  }

  /** Lets one change of its state follow another. */
  async inTurn<T>(action: () => Promise<T>): Promise<T> {
    const taking = this.#turn.then(action);
    this.#turn = taking.catch(() => {});
    return taking;
  }

  /** Calls `action` at `endAt`, unless this or `stopTime` is called before. */
  watchTime(action: () => void): void {
    this.#stopTime();
    this.#stopTime = afterMs(this.endAt.getTime() - Date.now(), action);
  }

  stopTime(): void {
    this.#stopTime();
  }

  say(message: string, level: LogEntry["level"] = "info"): void {
    this.log.push({ at: new Date(), level, message: message.slice(0, 1000) });
    if (this.log.length > mostEntries) this.log.shift();
  }

  /** Call this when it is killed. */
  ended(reason: unknown): void {
    this.#ending.abort(reason);
  }
}
