import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { startRedis } from "@fenced/test-support/databases";
import { createClient } from "redis";
import { expect, it } from "vitest";
import { redisDirectory } from "../../src/redis/index.ts";
import { localSessions } from "../support/local-sessions.ts";
import { eventually } from "../support/runs.ts";

const count = 1_000;
const perScript = 500;

it(
  "a thousand sessions cost the directory two commands for each renewal, and nothing else",
  needs("redis"),
  async () => {
    await using server = await startRedis();
    const client = await createClient({ url: server.url })
      .on("error", () => {})
      .connect();
    const calls = async (): Promise<Map<string, number>> => {
      const lines = (await client.info("commandstats")).matchAll(/cmdstat_(\S+?):calls=(\d+)/g);
      return new Map([...lines].map(([, name = "", number]) => [name, Number(number)]));
    };
    const sessions = localSessions({
      // Their places are nothing to the directory.
      create: () => Object.assign(new LocalCommandLineCodeExecutor(), { start: async () => {} }),
      directory: redisDirectory(client),
      leaseMs: 12_000,
      maxSessions: count,
    });
    for (let first = 0; first < count; first += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, index) => sessions.executor(`user-${first + index}`).start()));
    }
    const renewals = async (least: number): Promise<void> => {
      await client.sendCommand(["CONFIG", "RESETSTAT"]);
      await eventually(async () => expect((await calls()).get("evalsha") ?? 0).toBeGreaterThanOrEqual(least));
    };
    // One may have begun before all sessions were open.
    await renewals(3);
    await renewals(6);
    // A script that the server does not know yet is sent once, in a command of its own.
    const { evalsha = 0, eval: _, hmget = 0, hset = 0, ...others } = Object.fromEntries(await calls());
    expect([hmget, hset]).toEqual([evalsha * perScript, evalsha * perScript]);
    expect(Object.keys(others).toSorted()).toEqual(["config|resetstat", "info", "pexpire", "time"]);
    expect(sessions.counts.open).toBe(count);
    await sessions.drain();
    expect(await client.sendCommand(["DBSIZE"])).toBe(count);
    client.destroy();
  },
);
