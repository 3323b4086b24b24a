import { existsSync } from "node:fs";
import { type CodeExecutor, ComponentError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { describe, expect, it, vi } from "vitest";
import { ExecutorPool, type ExecutorPoolOptions, ExecutorSessions, QuotaExceededError } from "../../src/index.ts";
import { localExecutor, localPool, nothing } from "../support/local-pool.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";

type Create = ExecutorPoolOptions["create"];

async function workspaceOf(executor: CodeExecutor): Promise<string> {
  return (await executor.executeCodeBlocks(sh("pwd"))).output.trim();
}

describe("a pool", needs("bash"), () => {
  it("starts nothing until it is asked, and then keeps executors ready", async () => {
    const create = vi.fn<Create>(localExecutor);
    const pool = localPool({ create, min: 2, max: 4 });
    expect(pool.counts).toEqual(nothing);
    expect(create).not.toHaveBeenCalled();
    await pool.start();
    expect(pool.counts).toEqual({ ...nothing, ready: 2 });
    await pool.start();
    await using lease = await pool.acquire();
    expect((await lease.executor.executeCodeBlocks(sh("echo here"))).output).toBe("here\n");
    await eventually(() => expect(pool.counts).toEqual({ ...nothing, ready: 2, leased: 1 }));
    expect(create).toHaveBeenCalledTimes(3);
  });

  it("starts the next executor a little later if others are ready, and at once if none is", async () => {
    const pool = localPool({ min: 2, max: 6 });
    await pool.start();
    await using first = await pool.acquire();
    expect(pool.counts).toEqual({ ...nothing, ready: 1, leased: 1 });
    expect((await first.executor.executeCodeBlocks(sh("echo here"))).output).toBe("here\n");
    await eventually(() => expect(pool.counts).toEqual({ ...nothing, ready: 2, leased: 1 }));
    const others = [await pool.acquire(), await pool.acquire()];
    expect(pool.counts).toMatchObject({ ready: 0, starting: 2, leased: 3 });
    await Promise.all(others.map((lease) => lease.release()));
  });

  it("shows what is leased before its caller has it, and ends it if that fails", async () => {
    const created: CodeExecutor[] = [];
    const create: Create = (context) => {
      const executor = localExecutor(context);
      created.push(executor);
      return executor;
    };
    const pool = localPool({ create, max: 2 });
    const seen: CodeExecutor[] = [];
    await using lease = await pool.acquire({ onLease: (executor) => void seen.push(executor) });
    expect(seen).toEqual(created);
    expect(lease.executor).not.toBe(seen[0]);
    const refusing = (): never => {
      throw new Error("not this one");
    };
    await expect(pool.acquire({ onLease: refusing })).rejects.toThrow("not this one");
    await eventually(() => expect(pool.counts).toEqual({ ...nothing, leased: 1 }));
  });

  it("gives each caller a new executor, and deletes the last one's workspace", async () => {
    const pool = localPool({ max: 1 });
    const first = await pool.acquire();
    const workspace = await workspaceOf(first.executor);
    await first.executor.files.write("secret", "1");
    await first.release();
    await using second = await pool.acquire();
    expect(existsSync(workspace)).toBe(false);
    expect(await workspaceOf(second.executor)).not.toBe(workspace);
    expect(await second.executor.files.list()).toEqual([]);
  });

  it("uses no executor again whose ports have addresses, which would lead to the next caller's programs", async () => {
    const create = vi.fn<Create>(localExecutor);
    const pool = localPool({ create, max: 1, maxUses: 3 });
    const first = await pool.acquire();
    const address = (await first.executor.processes?.address(8000)) ?? "";
    await first.release();
    await using second = await pool.acquire();
    expect((await second.executor.executeCodeBlocks(sh("echo here"))).output).toBe("here\n");
    expect(create).toHaveBeenCalledTimes(2);
    const refused = await fetch(`http://${address}/`).catch((error: unknown) => error);
    expect(refused).toMatchObject({ cause: { code: "ECONNREFUSED" } });
  });

  it("warms executors up before their first use and before each further use", async () => {
    const warmUp = vi.fn<NonNullable<ExecutorPoolOptions["warmUp"]>>(async ({ files }) => files.write("warm", "yes"));
    const pool = localPool({ max: 1, maxUses: 2, warmUp });
    const workspaces = new Set<string>();
    for (let use = 0; use < 4; use += 1) {
      await using lease = await pool.acquire();
      const { output } = await lease.executor.executeCodeBlocks(
        sh("cat warm; ls; mkdir -p a/b empty/deeper; touch a/b/c d"),
      );
      expect(output).toBe("yeswarm\n");
      workspaces.add(await workspaceOf(lease.executor));
    }
    expect(workspaces.size).toBe(2);
    expect(warmUp).toHaveBeenCalledTimes(4);
  });

  it("serves waiting callers in order, and rejects one too many at once", async () => {
    const pool = localPool({ max: 1, maxWaiting: 2 });
    const order: number[] = [];
    const lease = await pool.acquire();
    const waiting = [1, 2].map(async (place) => {
      await using next = await pool.acquire();
      order.push(place);
      await next.executor.executeCodeBlocks(sh("true"));
    });
    expect(pool.counts).toMatchObject({ leased: 1, waiting: 2 });
    const refused = await failure(pool.acquire());
    expect(refused).toBeInstanceOf(QuotaExceededError);
    expect(String(refused)).toContain("All 1 executors of the pool are in use, and 2 callers are waiting");
    await lease.release();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2]);
  });

  it("rejects no caller while it can start an executor, even if maxWaiting is 0", async () => {
    const pool = localPool({ max: 2, maxWaiting: 0 });
    const leases = await Promise.all([pool.acquire(), pool.acquire()]);
    await expect(pool.acquire()).rejects.toThrow(QuotaExceededError);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it("never has more than max executors, including those that are stopping", async () => {
    let alive = 0;
    let most = 0;
    const create: Create = (context) => {
      const executor = localExecutor(context);
      const dispose = executor[Symbol.asyncDispose].bind(executor);
      alive += 1;
      most = Math.max(most, alive);
      executor[Symbol.asyncDispose] = () => dispose().finally(() => (alive -= 1));
      return executor;
    };
    const pool = localPool({ create, min: 2, max: 3 });
    const use = async (text: number) => {
      await using lease = await pool.acquire();
      return (await lease.executor.executeCodeBlocks(sh(`echo ${text}`))).output;
    };
    const outputs = await Promise.all(Array.from({ length: 12 }, (_, text) => use(text)));
    expect(outputs).toEqual(Array.from({ length: 12 }, (_, text) => `${text}\n`));
    await pool.drain();
    expect({ alive, most }).toEqual({ alive: 0, most: 3 });
  });

  it("stops idle executors down to min", async () => {
    const pool = localPool({ min: 1, max: 3, maxUses: 2, idleTimeoutMs: 2000 });
    const leases = await Promise.all([pool.acquire(), pool.acquire(), pool.acquire()]);
    await Promise.all(leases.map((lease) => lease.release()));
    await eventually(() => expect(pool.counts.ready).toBe(3));
    await eventually(() => expect(pool.counts).toEqual({ ...nothing, ready: 1 }));
  });
});

describe("a lease", needs("bash"), () => {
  it("is a complete code executor", async () => {
    const pool = localPool();
    await using lease = await pool.acquire();
    const { executor } = lease;
    expect(executor.capabilities.languages).toContain("sh");
    expect(executor.formatFunctionsForPrompt()).toBe("");
    expect(() => executor.dumpComponent()).toThrow(ComponentError);
    await executor.start();
    await executor.files.write("note", "kept");
    await executor.restart();
    const types: string[] = [];
    for await (const event of executor.streamCodeBlocks(sh("cat note"))) types.push(event.type);
    expect(types.at(-1)).toBe("result");
    expect(await new Response(executor.files.readStream("note")).text()).toBe("kept");
    await expect(executor.executeCodeBlocks([])).rejects.toThrow(InvalidInputError);
    await expect(executor.executeCodeBlocks(sh("true"), { signal: AbortSignal.abort("enough") })).rejects.toBe(
      "enough",
    );
  });

  it("ends with its executor's stop(), which deletes the workspace", async () => {
    const pool = localPool({ maxUses: 5 });
    const { executor } = await pool.acquire();
    const workspace = await workspaceOf(executor);
    await executor.stop();
    expect(existsSync(workspace)).toBe(false);
    expect(pool.counts).toEqual(nothing);
    await expect(executor.start()).rejects.toThrow("The lease of this executor has ended");
  });

  it("can be a session's executor", async () => {
    const pool = localPool({ min: 1, max: 2 });
    const sessions = new ExecutorSessions({
      create: async (_key, signal) => (await pool.acquire({ signal })).executor,
      maxSessions: 2,
    });
    await sessions.run("ann", sh("echo hers > note"));
    expect((await sessions.run("ann", sh("cat note"))).output).toBe("hers\n");
    expect((await sessions.run("bob", sh("ls"))).output).toBe("");
    await sessions.end("ann");
    expect((await sessions.run("cid", sh("ls"))).output).toBe("");
    await sessions.drain();
    await pool.drain();
    expect(pool.counts).toEqual(nothing);
  });
});

describe("drain", needs("bash"), () => {
  it("lets leases continue within the grace period, rejects other callers, and leaves nothing", async () => {
    const pool = localPool({ min: 1, max: 2 });
    const lease = await pool.acquire();
    const other = await pool.acquire();
    const workspace = await workspaceOf(lease.executor);
    const waiting = failure(pool.acquire());
    const drained = pool.drain({ graceMs: 60_000 });
    expect(String(await waiting)).toContain("The service is shutting down");
    await expect(pool.acquire()).rejects.toThrow("The service is shutting down");
    await expect(pool.start()).rejects.toThrow("The service is shutting down");
    expect((await lease.executor.executeCodeBlocks(sh("echo on"))).output).toBe("on\n");
    await lease.release();
    await other.release();
    await drained;
    expect(existsSync(workspace)).toBe(false);
    expect(pool.counts).toEqual(nothing);
  });

  it("kills what still runs after the grace period, which a second call can shorten", async () => {
    const pool = localPool();
    const { executor } = await pool.acquire();
    const workspace = await workspaceOf(executor);
    const running = failure(executor.executeCodeBlocks(sh("sleep 600")));
    const slowly = pool.drain({ graceMs: 600_000 });
    await pool.drain({ graceMs: 10 });
    expect(String(await running)).toContain("The service is shutting down");
    await slowly;
    expect(existsSync(workspace)).toBe(false);
    await expect(pool.drain({ graceMs: -1 })).rejects.toThrow(InvalidInputError);
  });
});

it("reports the number of executors and how long callers wait to telemetry", needs("bash"), async () => {
  await using recorder = new TelemetryRecorder();
  const made = later<CodeExecutor>();
  const pool = localPool({ max: 1, name: "tests", create: () => made.promise });
  const acquired = pool.acquire();
  expect(await recorder.gauges()).toEqual({
    "fenced.pool.executors tests ready": 0,
    "fenced.pool.executors tests starting": 1,
    "fenced.pool.executors tests leased": 0,
    "fenced.pool.executors tests ending": 0,
    "fenced.pool.waiting tests": 1,
  });
  made.give(localExecutor({ onSessionLost: () => {} }));
  const lease = await acquired;
  expect(recorder.span("fenced.pool.acquire").attributes).toEqual({ "fenced.pool.name": "tests" });
  expect((await recorder.histograms()).has("fenced.pool.acquire.duration")).toBe(true);
  await lease.executor.stop();
  expect(await recorder.gauges()).toMatchObject({ "fenced.pool.executors tests leased": 0 });
});

it("checks its options", async () => {
  const create = localExecutor;
  expect(() => new ExecutorPool({ create, max: 0 })).toThrow(InvalidInputError);
  expect(() => new ExecutorPool({ create, min: 3, max: 2 })).toThrow("must be at most max, which is 2");
  const misspelt = { create, maxUse: 5 };
  expect(() => new ExecutorPool(misspelt)).toThrow('Did you mean "maxUses"');
  const pool = new ExecutorPool({ create });
  const wrong = { signal: 5 } as unknown as { signal: AbortSignal };
  await expect(pool.acquire(wrong)).rejects.toThrow(InvalidInputError);
  expect(pool.counts).toEqual(nothing);
});
