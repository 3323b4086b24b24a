import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ExecutorStoppedError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { describe, expect, it, vi } from "vitest";
import type { ExecutorPoolOptions } from "../../src/index.ts";
import { localExecutor, localPool } from "../support/local-pool.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";

type Create = ExecutorPoolOptions["create"];
type OnError = NonNullable<ExecutorPoolOptions["onError"]>;

describe("a lease", needs("bash"), () => {
  it("can be released twice, and counts once", async () => {
    const pool = localPool({ max: 1, maxUses: 2 });
    await using lease = await pool.acquire();
    await Promise.all([lease.release(), lease.release()]);
    const next = await pool.acquire();
    await lease.release();
    expect((await next.executor.executeCodeBlocks(sh("echo safe"))).output).toBe("safe\n");
    expect(pool.counts.leased).toBe(1);
    await next.release();
  });

  it("is unusable after its release: its runs are killed, and nothing reaches the next caller", async () => {
    const pool = localPool({ max: 1, maxUses: 9 });
    const lease = await pool.acquire();
    const { executor } = lease;
    const started = later<number>();
    const streaming = failure(
      (async () => {
        for await (const event of executor.streamCodeBlocks(sh("echo $$; sleep 600"))) {
          if (event.type === "stdout") started.give(Number(event.text));
        }
      })(),
    );
    const pid = await started.promise;
    const upload = executor.files.writeStream("late").getWriter();
    await upload.write(Buffer.from("some"));
    const { files } = executor;
    await lease.release();
    expect(String(await streaming)).toContain("The lease of this executor has ended: it was released");
    const late = [
      () => executor.executeCodeBlocks(sh("true")),
      () => executor.files.write("late", "2"),
      () => files.list(),
      () => upload.write(Buffer.from("more")),
      () => executor.restart(),
      () => executor.start(),
      () => executor.streamCodeBlocks(sh("true"))[Symbol.asyncIterator]().next(),
    ];
    for (const call of late) await expect(call()).rejects.toThrow(ExecutorStoppedError);
    await using other = await pool.acquire();
    expect(isAlive(pid)).toBe(false);
    expect(await other.executor.files.list()).toEqual([]);
  });

  it("does not pass its executor on if it is released during a restart", async () => {
    const restarts = later<string>();
    const create = vi.fn<Create>((context) => {
      const executor = localExecutor(context);
      const restart = executor.restart.bind(executor);
      executor.restart = () => restarts.promise.then(restart);
      return executor;
    });
    const pool = localPool({ create, max: 1, maxUses: 9 });
    const lease = await pool.acquire();
    const restarting = failure(lease.executor.restart());
    await lease.release();
    restarts.give("go on");
    expect(String(await restarting)).toContain("The lease of this executor has ended: it was released");
    await (await pool.acquire()).release();
    expect(create).toHaveBeenCalledTimes(2);
  });

  it("ends automatically after maxLeaseMs", async () => {
    const onError = vi.fn<OnError>();
    const pool = localPool({ max: 1, maxLeaseMs: 200, onError });
    const { executor } = await pool.acquire();
    const running = failure(executor.executeCodeBlocks(sh("sleep 600")));
    expect(String(await running)).toContain("it was not released within 200 ms");
    expect(String(onError.mock.calls[0]?.[0])).toContain("it was not released within 200 ms");
    await (await pool.acquire()).release();
  });

  it("is taken back if it is forgotten, but not while it is in use", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const onError = vi.fn<OnError>();
    const pool = localPool({ max: 2, onError });
    const forget = async () => {
      const { executor } = await pool.acquire();
      await executor.executeCodeBlocks(sh("true"));
    };
    // Only the run itself keeps this lease alive.
    const use = async () =>
      (await pool.acquire()).executor.executeCodeBlocks(sh("until [ -e go ]; do sleep 0.02; done; pwd"));
    await forget();
    const running = use();
    const ended = failure(running);
    await eventually(() => expect(pool.counts.leased).toBe(2));
    await eventually(() => {
      collect();
      expect(pool.counts.leased).toBe(1);
    });
    expect(String(onError.mock.calls[0]?.[0])).toContain(
      "it was garbage-collected without being released; use `await using`",
    );
    expect(onError).toHaveBeenCalledOnce();
    await pool.drain({ graceMs: 0 });
    expect(String(await ended)).toContain("The service is shutting down");
  });
});

it("a caller that leaves while it waits gives up only its own place", needs("bash"), async () => {
  const pool = localPool({ max: 1 });
  const lease = await pool.acquire();
  const leave = new AbortController();
  const left = failure(pool.acquire({ signal: leave.signal }));
  const stays = pool.acquire();
  expect(pool.counts.waiting).toBe(2);
  leave.abort("gone");
  expect(await left).toBe("gone");
  expect(pool.counts.waiting).toBe(1);
  await lease.release();
  await (await stays).release();
  await expect(pool.acquire({ signal: AbortSignal.abort("before") })).rejects.toBe("before");
});

describe.skipIf(process.platform !== "linux")("a lease", needs("python3"), () => {
  it("ends the watches of its caller, and the next one can watch", async () => {
    const pool = localPool({ max: 1, maxUses: 9 });
    for (const path of ["first", "second"]) {
      const lease = await pool.acquire();
      const events = lease.executor.files.watch(".");
      expect(await events.next()).toEqual({ done: false, value: { type: "start", path: "." } });
      await lease.executor.files.write(path, "");
      expect(await events.next()).toEqual({ done: false, value: { type: "create", path } });
      const rest = events.next();
      await lease.release();
      // What the pool deletes may still be seen.
      const { value } = await rest;
      expect([undefined, { type: "remove", path }]).toContainEqual(value);
      await events.return();
    }
  });
});
