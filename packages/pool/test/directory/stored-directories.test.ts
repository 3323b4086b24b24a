import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { startPostgres, startRedis, type TestDatabase } from "@fenced/test-support/databases";
import { Client, Pool } from "pg";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryDirectory } from "../../src/index.ts";
import { postgresDirectory } from "../../src/postgres/index.ts";
import { redisDirectory } from "../../src/redis/index.ts";
import { openDirectory, type OpenDirectory } from "../support/directories.ts";
import {
  ann,
  bob,
  checkpoint,
  directoryCases,
  handle,
  leaseMs,
  newKey,
  take,
  type TwoWays,
} from "../support/directory-cases.ts";
import { eventually } from "../support/runs.ts";

describe.each([
  { name: "redis", start: startRedis, needed: needs("redis") },
  { name: "postgres", start: startPostgres, needed: needs("postgres") },
])("a directory in $name", ({ start, needed }) => {
  describe("keeps leases", needed, () => {
    let server: TestDatabase | undefined;
    const open: OpenDirectory[] = [];
    const ways: TwoWays = { one: memoryDirectory(), other: memoryDirectory() };

    beforeAll(async () => {
      server = await start();
      open.push(await openDirectory(server.url), await openDirectory(server.url));
      [ways.one, ways.other] = [open[0]?.directory ?? ways.one, open[1]?.directory ?? ways.other];
    }, 120_000);
    afterAll(async () => {
      for (const each of open) await each[Symbol.asyncDispose]();
      await server?.[Symbol.asyncDispose]();
    });

    directoryCases(() => ways);

    it("that end by themselves unless they are renewed", async () => {
      const { one, other } = ways;
      const key = newKey();
      const first = await take(one, key, ann, 5_000);
      await one.update(first, { checkpoint });
      const waiting = await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" });
      expect(waiting).toMatchObject({ isHeld: false });
      expect(waiting.leaseMs).toBeLessThanOrEqual(5_000);
      await eventually(async () =>
        expect(await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" })).toMatchObject({
          isHeld: true,
          isAbandoned: true,
          note: { checkpoint },
        }),
      );
      expect(await one.update(first, {})).toBe(false);
    });

    it("of many keys, renewed together", async () => {
      const { one } = ways;
      const holds = await Promise.all(Array.from({ length: 1_200 }, () => take(one, newKey())));
      const renewed = await one.renew(holds, { owner: ann, leaseMs });
      expect(renewed.map(({ token }) => token)).toEqual(expect.arrayContaining(holds.map(({ token }) => token)));
      await Promise.all(holds.map((hold) => one.release(hold, undefined)));
    });

    it("refuses keys that could be mistaken for others", async () => {
      const { one } = ways;
      for (const key of ["a\0b", "\uD800", "x".repeat(513)]) {
        await expect(take(one, key)).rejects.toThrow("Choose shorter keys");
      }
      const hold = await take(one, newKey());
      await expect(one.update(hold, { handle: { ...handle, session: { text: "x".repeat(70_000) } } })).rejects.toThrow(
        "65536 characters",
      );
    });
  });
});

it("directories need the clients of their packages", () => {
  expect(() => redisDirectory({})).toThrow(InvalidInputError);
  expect(() => redisDirectory(createClient(), { prefix: "" })).toThrow(InvalidInputError);
  // The connection of a single client cannot be shared.
  expect(() => postgresDirectory(new Client())).toThrow("needs a Pool of the package pg");
  expect(() => postgresDirectory(new Pool(), { table: "sessions; --" })).toThrow("must be a name");
});
