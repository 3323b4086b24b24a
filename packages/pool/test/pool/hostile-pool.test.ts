import { BackendUnavailableError, type CodeExecutor, ExecutorStoppedError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import type { ExecutorPoolOptions } from "../../src/index.ts";
import { breakable, type Breaking } from "../support/breakable.ts";
import { localExecutor, localPool, nothing } from "../support/local-pool.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";

type Create = ExecutorPoolOptions["create"];
type OnError = NonNullable<ExecutorPoolOptions["onError"]>;

const gone = () => new BackendUnavailableError("The daemon is gone", { remedy: "Start it." });

/** A `create` that fails this many times, and records when it was called. */
function failing(failures: number, error: () => Error) {
  const calls: number[] = [];
  const left = { failures };
  const create: Create = (context) => {
    calls.push(performance.now());
    left.failures -= 1;
    if (left.failures >= 0) throw error();
    return localExecutor(context);
  };
  return { create, calls, left };
}

describe("create", needs("bash"), () => {
  it("that never answers rejects waiting callers, and its late executor is stopped", async () => {
    const made = later<CodeExecutor>();
    // Both are started already, so that a slow machine cannot cause the timeout.
    const [late, well] = [new LocalCommandLineCodeExecutor(), new LocalCommandLineCodeExecutor()];
    await Promise.all([late.start(), well.start()]);
    const create = vi.fn<Create>(() => well).mockImplementationOnce(() => made.promise);
    const pool = localPool({ create, max: 1, startTimeoutMs: 300 });
    const failures = await Promise.all([failure(pool.acquire()), failure(pool.acquire())]);
    for (const error of failures) expect(String(error)).toContain("did not start within 300 ms");
    expect(create.mock.calls[0]?.[0].signal.aborted).toBe(true);
    const recovered = pool.acquire();
    made.give(late);
    await (await recovered).release();
    await eventually(() => expect(late.start()).rejects.toThrow(ExecutorStoppedError));
  });

  it("that fails is retried before callers get an error", async () => {
    const { create, calls } = failing(2, gone);
    const pool = localPool({ create });
    await using lease = await pool.acquire();
    expect((await lease.executor.executeCodeBlocks(sh("echo up"))).output).toBe("up\n");
    expect(calls).toHaveLength(3);
  });

  it("that keeps failing rejects all waiting callers, and is called less and less often", async () => {
    const { create, calls, left } = failing(Infinity, gone);
    const pool = localPool({ create, min: 2 });
    const failures = await Promise.all([failure(pool.acquire()), failure(pool.acquire()), failure(pool.start())]);
    for (const error of failures) expect(String(error)).toContain("The daemon is gone. Start it.");
    // The first four came together, and count as one failure.
    expect(calls).toHaveLength(4 + 1 + 1);
    await expect(pool.acquire()).rejects.toThrow("The daemon is gone");
    expect((calls[6] ?? 0) - (calls[5] ?? 0)).toBeGreaterThan(380);
    // The pool recovers by itself.
    left.failures = 0;
    await (await pool.acquire()).release();
    expect((calls[7] ?? 0) - (calls[6] ?? 0)).toBeGreaterThan(780);
  });

  it("that throws a TypeError rejects the caller at once", async () => {
    const { create, calls } = failing(1, () => new TypeError("no such thing"));
    const pool = localPool({ create });
    await expect(pool.acquire()).rejects.toThrow("no such thing");
    expect(calls).toHaveLength(1);
    await (await pool.acquire()).release();
  });

  it("that returns an executor twice, or none at all, is rejected", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    const pool = localPool({ create: () => executor, max: 2 });
    await using lease = await pool.acquire();
    await expect(pool.acquire()).rejects.toThrow("`create` returned an executor that it has returned before");
    expect((await lease.executor.executeCodeBlocks(sh("echo mine"))).output).toBe("mine\n");
    const wrong = localPool({ create: (() => ({})) as unknown as Create });
    await expect(wrong.acquire()).rejects.toThrow("must be a code executor");
  });

  it("that fails when no caller waits is reported to onError once", async () => {
    const onError = vi.fn<OnError>();
    const { create, calls } = failing(3, gone);
    const pool = localPool({ create, min: 1, onError });
    const signal = AbortSignal.abort("not now");
    await expect(pool.start({ signal })).rejects.toBe("not now");
    expect(calls).toHaveLength(0);
    const leave = new AbortController();
    const start = failure(pool.start({ signal: leave.signal }));
    leave.abort("left");
    expect(await start).toBe("left");
    await eventually(() => expect(pool.counts.ready).toBe(1));
    expect(onError).toHaveBeenCalledOnce();
    expect(String(onError.mock.calls[0]?.[0])).toContain("The daemon is gone");
  });

  it("is followed by a warm-up whose failure rejects the caller and stops the executor", async () => {
    const made: LocalCommandLineCodeExecutor[] = [];
    const create: Create = (context) => {
      const executor = localExecutor(context);
      made.push(executor);
      return executor;
    };
    const pool = localPool({ create, warmUp: () => Promise.reject(new Error("no pandas")) });
    await expect(pool.acquire()).rejects.toThrow("no pandas");
    await eventually(() => expect(pool.counts).toEqual(nothing));
    await expect(made[0]?.start()).rejects.toThrow(ExecutorStoppedError);
  });
});

describe("an executor", needs("bash"), () => {
  it("whose stop hangs gives up its place after stopTimeoutMs, and is reported", async () => {
    const onError = vi.fn<OnError>();
    const stuck = later<string>();
    const create = vi.fn<Create>(localExecutor).mockImplementationOnce((context) => {
      const executor = localExecutor(context);
      const dispose = executor[Symbol.asyncDispose].bind(executor);
      executor[Symbol.asyncDispose] = () => stuck.promise.then(dispose);
      return executor;
    });
    const pool = localPool({ create, max: 1, stopTimeoutMs: 100, onError });
    await (await pool.acquire()).release();
    await (await pool.acquire()).release();
    expect(String(onError.mock.calls[0]?.[0])).toContain("An executor did not stop within 100 ms");
    stuck.give("go on");
    await pool.drain();
  });

  it("that is lost while it is idle is replaced at once", async () => {
    const lose: (() => void)[] = [];
    const create: Create = ({ onSessionLost }) => {
      lose.push(() => onSessionLost("The container was removed."));
      return new LocalCommandLineCodeExecutor();
    };
    const pool = localPool({ create, min: 1 });
    await pool.start();
    lose[0]?.();
    expect(pool.counts).toMatchObject({ ready: 0, ending: 1 });
    await pool.start();
    expect(lose).toHaveLength(2);
  });

  it("that is lost again and again right after its start is replaced less and less often", async () => {
    const calls: number[] = [];
    const create: Create = ({ onSessionLost }) => {
      calls.push(performance.now());
      const executor = new LocalCommandLineCodeExecutor();
      if (calls.length < 4) void executor.start().then(() => setImmediate(onSessionLost, "It ended."));
      return executor;
    };
    const pool = localPool({ create, min: 1, onError: () => {} });
    await failure(pool.start());
    await eventually(() => expect(calls).toHaveLength(4));
    expect((calls[3] ?? 0) - (calls[2] ?? 0)).toBeGreaterThan(190);
  });

  it("that stops answering is detected and replaced", async () => {
    const breaking: Breaking = { broken: "no" };
    const create = vi
      .fn<Create>(localExecutor)
      .mockImplementationOnce((context) => breakable(localExecutor(context), breaking));
    const pool = localPool({ create, min: 1, checkIntervalMs: 50 });
    await pool.start();
    breaking.broken = "for good";
    await eventually(() => expect(create).toHaveBeenCalledTimes(2));
    await eventually(() => expect(pool.counts).toEqual({ ...nothing, ready: 1 }));
  });

  it("that broke down during a lease is not used again", async () => {
    const breaking: Breaking = { broken: "no" };
    const create = vi.fn<Create>((context) => breakable(localExecutor(context), breaking));
    const pool = localPool({ create, max: 1, maxUses: 9 });
    const lease = await pool.acquire();
    breaking.broken = "once";
    await expect(lease.executor.executeCodeBlocks(sh("true"))).rejects.toThrow("The backend is gone");
    await lease.release();
    await (await pool.acquire()).release();
    expect(create).toHaveBeenCalledTimes(2);
  });
});
