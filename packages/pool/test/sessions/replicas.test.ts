import { access, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { directoryStore } from "@fenced/checkpoints";
import { needs } from "@fenced/test-support";
import { startPostgres, startRedis, type TestDatabase } from "@fenced/test-support/databases";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Replica } from "../support/replica.ts";
import { eventually } from "../support/runs.ts";
import { race, Witness } from "../support/witness.ts";

/** Short enough to wait for, and longer than a busy machine lets a process wait. */
const leaseMs = 8_000;

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "fenced-test-replicas-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Replicas over one engine and one store. */
async function replicas(url: string, count: number, ...image: readonly string[]) {
  const path = await temporaryDirectory();
  const started = await Promise.all(
    Array.from({ length: count }, () => Replica.start(url, path, String(leaseMs), ...image)),
  );
  onTestFinished(async () => {
    await Promise.all(started.map((each) => each[Symbol.asyncDispose]()));
  });
  const [one, other, third] = started;
  if (!one || !other) throw new Error("Too few");
  return { one, other, third: third ?? other, store: directoryStore(path) };
}

describe.each([
  { name: "Redis", start: startRedis, needed: needs("redis", "bash") },
  { name: "PostgreSQL", start: startPostgres, needed: needs("postgres", "bash") },
])("three processes over $name", ({ start, needed }) => {
  describe("serve", { ...needed, timeout: 120_000 }, () => {
    let server: TestDatabase | undefined;
    let url = "";
    beforeAll(async () => {
      server = await start();
      url = server.url;
    }, 120_000);
    afterAll(async () => server?.[Symbol.asyncDispose]());

    it("every key in each of them, and one after another may be replaced", async () => {
      const { one, other, third } = await replicas(url, 3);
      const outputs: string[] = [];
      for (const each of [one, other, third, one, one, third]) {
        const { output, stateLost } = await each.run("ann", "echo x >> log; wc -l < log");
        outputs.push(`${output?.trim()} ${stateLost}`);
      }
      expect(outputs).toEqual(["1 false", "2 false", "3 false", "4 false", "5 false", "6 false"]);
      await third.drain();
      expect(third.lines).toContainEqual({ drained: true });
      await one.drain();
      expect(await other.run("ann", "wc -l < log")).toMatchObject({ output: "6\n", stateLost: false });
    });

    it("a key whose process was killed, from its last checkpoint, once its lease has ended", async () => {
      const { one, other, store } = await replicas(url, 2);
      await one.run("bob", "echo kept > note");
      const lost = one.run("bob", "echo running > other; sleep 600");
      lost.catch(() => {});
      one.signal("SIGKILL");
      expect(await other.run("bob", "ls; cat note")).toMatchObject({ output: "note\nkept\n", stateLost: true });
      expect(other.lines).toContainEqual({
        lost: "bob",
        reason: expect.stringContaining("last checkpoint was restored"),
      });
      expect(await other.run("bob", "cat note")).toMatchObject({ stateLost: false });
      expect(await store.list()).toHaveLength(1);
    });

    it("a key whose process was stopped, and changes nothing when it comes back late", async () => {
      const { one, other, store } = await replicas(url, 2);
      await one.run("cid", "echo first > note");
      const marks = await temporaryDirectory();
      const [begun, go, written] = ["begun", "go", "written"].map((name) => join(marks, name));
      const late = one.run(
        "cid",
        `touch ${begun}; until [ -e ${go} ]; do sleep 0.05; done; echo late > note; touch ${written}`,
      );
      await one.run("dan", "true");
      await eventually(() => access(`${begun}`));
      one.signal("SIGSTOP");
      expect(await other.run("cid", "cat note; echo second >> note")).toMatchObject({
        output: "first\n",
        stateLost: true,
      });
      // The program of the stopped process goes on.
      await writeFile(`${go}`, "");
      await eventually(() => access(`${written}`));
      one.signal("SIGCONT");
      expect((await late).failed).toMatchObject({ code: "executor_stopped" });
      await eventually(() =>
        expect(one.lines).toContainEqual({ lost: "cid", reason: expect.stringContaining("in time") }),
      );
      expect((await other.run("cid", "cat note")).output).toBe("first\nsecond\n");
      // The late one asks for it like everyone else.
      expect(await one.run("cid", "cat note")).toMatchObject({ output: "first\nsecond\n", stateLost: false });
      // Those of "cid" and "dan".
      expect(await store.list()).toHaveLength(2);
    });

    it("their keys while the engine is away for less than a lease, and then reject calls until it is back", async () => {
      const { one, other } = await replicas(url, 2);
      await one.run("eve", "echo kept > note");
      await server?.kill();
      expect(await one.run("eve", "cat note")).toMatchObject({ output: "kept\n", stateLost: false });
      const elsewhere = await other.run("fay", "true");
      expect(elsewhere.failed).toMatchObject({ code: "backend_unavailable" });
      expect(elsewhere.failed?.message).toContain("Check that its server (Redis or PostgreSQL) runs");
      await eventually(() =>
        expect(one.lines).toContainEqual({ lost: "eve", reason: expect.stringContaining("in time") }),
      );
      expect((await one.run("eve", "cat note")).failed?.code).toBe("backend_unavailable");
      await server?.start();
      await eventually(async () => expect(await one.run("eve", "cat note")).toMatchObject({ output: "kept\n" }));
      expect((await other.run("eve", "cat note")).output).toBe("kept\n");
    });

    it("each key one after another, however often two processes race for it", async () => {
      await using witness = await Witness.start();
      const racers = ["left", "right"].map((name) => race(url, String(witness.port), name, "100"));
      expect(await Promise.all(racers)).toEqual([0, 0]);
      expect(witness.problems).toEqual([]);
      expect(witness.tokens).toHaveLength(200);
      // Each has a higher token than all before.
      expect(witness.tokens).toEqual(witness.tokens.toSorted((one, other) => one - other));
      expect(new Set(witness.tokens).size).toBe(200);
    });
  });
});
