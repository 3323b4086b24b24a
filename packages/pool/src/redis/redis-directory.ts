import { createHash } from "node:crypto";
import { InvalidInputError } from "@fenced/core";
import { checkOptions, type OptionSchemas, optionsSchema } from "@fenced/core/options";
import * as z from "zod";
import type {
  AcquiredSession,
  OccupiedSession,
  RenewedSession,
  SessionDirectory,
  SessionHold,
  SessionMessage,
  SessionNote,
  SessionRequest,
} from "../directory/session-directory.ts";
import {
  checkAnswer,
  checkKey,
  keptMs,
  readMessage,
  readNote,
  storedNote,
  storedToken,
} from "../directory/stored-session.ts";
import { isRedisClient, type RedisClient, type ScriptCall } from "./redis-client.ts";
import { acquireScript, releaseScript, renewScript, updateScript } from "./scripts.ts";

/** How many records one script renews: others wait for it. */
const renewedAtOnce = 500;

const text = z.string().max(65_536);
const acquired = z.union([
  z.tuple([z.literal("occupied"), text, z.string().regex(/^\d{1,16}$/)]),
  z.tuple([z.literal("held"), storedToken, text, z.enum(["free", "abandoned"])]),
]);
const renewed = z.array(z.enum(["held", "hand-over", "end", "over"])).max(renewedAtOnce);
const done = z.union([z.literal(0), z.literal(1)]).transform((number) => number === 1);

/** Options of `redisDirectory`. */
export interface RedisDirectoryOptions {
  /**
   * What the names of all records and channels begin with; different services need different ones. The part in braces
   * keeps them together in a cluster. Default: `{fenced}:session:`.
   */
  readonly prefix?: string | undefined;
}

const directoryOptions: z.ZodType<RedisDirectoryOptions> = optionsSchema({
  prefix: z.string().min(1).max(200).exactOptional(),
} satisfies OptionSchemas<RedisDirectoryOptions>);

/**
 * A directory of sessions in Redis 6 or later, for any number of processes. Needs a connected client of the package `redis`,
 * which you create and close; it opens one more connection, for messages, as long as its sessions are open.
 *
 * @throws InvalidInputError if an argument is wrong.
 *
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on("error", console.error).connect();
 * const sessions = new ExecutorSessions({ create, directory: redisDirectory(client), checkpoints });
 */
export function redisDirectory(client: object, options: RedisDirectoryOptions = {}): SessionDirectory {
  if (!isRedisClient(client)) {
    throw new InvalidInputError("redisDirectory needs a client of the package redis, version 5 or later", {
      remedy: "Pass `await createClient({ url }).connect()`.",
    });
  }
  const { prefix = "{fenced}:session:" } = checkOptions(directoryOptions, options, "redisDirectory");
  return new RedisDirectory(client, prefix);
}

class RedisDirectory implements SessionDirectory {
  readonly #client: RedisClient;
  readonly #prefix: string;
  readonly #channels: string;

  constructor(client: RedisClient, prefix: string) {
    this.#client = client;
    this.#prefix = `${prefix}key:`;
    this.#channels = `${prefix}owner:`;
  }

  async acquire(
    key: string,
    { owner, leaseMs, request }: { readonly owner: string; readonly leaseMs: number; readonly request: SessionRequest },
  ): Promise<AcquiredSession | OccupiedSession> {
    const words = [owner, String(leaseMs), request, this.#channels, checkKey(key), String(keptMs)];
    const answer = checkAnswer(acquired, await this.#run(acquireScript, [key], words));
    if (answer[0] === "occupied") return { isHeld: false, owner: answer[1], leaseMs: Number(answer[2]) };
    const [, token, note, state] = answer;
    return { isHeld: true, token, leaseMs, note: readNote(note), isAbandoned: state === "abandoned" };
  }

  async renew(
    holds: readonly SessionHold[],
    { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
  ): Promise<readonly RenewedSession[]> {
    const goingOn: RenewedSession[] = [];
    for (let at = 0; at < holds.length; at += renewedAtOnce) {
      const some = holds.slice(at, at + renewedAtOnce);
      const words = [owner, String(leaseMs), String(keptMs), ...some.map((hold) => String(hold.token))];
      const keys = some.map(({ key }) => key);
      const states = checkAnswer(renewed, await this.#run(renewScript, keys, words));
      for (const [index, hold] of some.entries()) {
        const state = states[index] ?? "over";
        if (state === "over") continue;
        goingOn.push({ key: hold.key, token: hold.token, ...(state === "held" ? {} : { request: state }) });
      }
    }
    return goingOn;
  }

  async update({ key, owner, token }: SessionHold, note: SessionNote): Promise<boolean> {
    const stored = storedNote(note);
    const words = [owner, String(token), stored.text, stored.isKept ? "1" : "0", String(keptMs)];
    return checkAnswer(done, await this.#run(updateScript, [key], words));
  }

  async release({ key, owner, token }: SessionHold, note: SessionNote | undefined): Promise<boolean> {
    const stored = note && storedNote(note);
    const words = [owner, String(token), stored?.text ?? "", stored?.isKept === true ? "1" : "0", String(keptMs)];
    return checkAnswer(done, await this.#run(releaseScript, [key], [...words, this.#channels, key]));
  }

  async listen(owner: string, listener: (message: SessionMessage) => void): Promise<() => Promise<void>> {
    const subscriber = this.#client.duplicate();
    // It connects again by itself, and the client that it was made from has the same errors.
    subscriber.on("error", () => {});
    const end = async (): Promise<void> => subscriber.destroy();
    try {
      await subscriber.connect();
      await subscriber.subscribe(`${this.#channels}${owner}`, (sent) => {
        const message = readMessage(sent);
        if (message) listener(message);
      });
    } catch (error) {
      await end();
      throw error;
    }
    return end;
  }

  async #run(script: string, keys: readonly string[], words: readonly string[]): Promise<unknown> {
    const call: ScriptCall = { keys: keys.map((key) => `${this.#prefix}${key}`), arguments: [...words] };
    try {
      return await this.#client.evalSha(createHash("sha1").update(script).digest("hex"), call);
    } catch (error) {
      // Redis forgets scripts when it starts.
      if (!String(error).includes("NOSCRIPT")) throw error;
      return this.#client.eval(script, call);
    }
  }
}
