import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { aborted, say, ScriptedExecutor, wait } from "./support/scripted-executor.ts";

describe("life cycle", () => {
  it("shares one start among all calls", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(10) });
    await Promise.all([executor.start(), executor.start(), executor.executeCodeBlocks([say("a")])]);
    expect(executor.calls).toEqual(["open", "end a"]);
  });

  it("closes once, and not at all if it was not started", async () => {
    const executor = new ScriptedExecutor();
    await executor.stop();
    await executor.start();
    await Promise.all([executor.stop(), executor.stop()]);
    await executor.stop();
    expect(executor.calls).toEqual(["open", "close"]);
  });

  it("ends running blocks when it stops, and can be started again", async () => {
    const executor = new ScriptedExecutor();
    const call = executor.executeCodeBlocks([wait("a")]);
    const failed = call.catch((error: unknown) => error);
    await sleep(10);
    const stopped = executor.stop();
    const started = executor.start();
    const again = executor.executeCodeBlocks([say("b")]);
    await Promise.all([stopped, started]);
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(await again).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "end a", "close", "open", "end b"]);
  });

  it("opens nothing for a call after stop(), even if it was never started", async () => {
    const executor = new ScriptedExecutor();
    for (const round of [0, 1]) {
      await executor.stop();
      const stream = executor.streamCodeBlocks([say("a")]);
      const calls = [
        executor.executeCodeBlocks([say("a")]),
        executor.restart(),
        executor.files.list(),
        executor.files.stat("a"),
        executor.files.read("a"),
        executor.files.readStream("a").getReader().read(),
        executor.files.write("a", ""),
        executor.files.writeStream("a").close(),
        executor.files.remove("a"),
        executor.files.upload([]),
        executor.files.download([], "."),
        stream[Symbol.asyncIterator]().next(),
      ];
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome).toMatchObject({ status: "rejected", reason: { code: "executor_stopped" } });
      }
      expect(executor.calls).toEqual(round === 0 ? [] : ["open", "close"]);
      if (round === 0) await executor.start();
    }
  });

  it("cannot be started again after it was disposed of", async () => {
    const executor = new ScriptedExecutor();
    await executor[Symbol.asyncDispose]();
    await expect(executor.start()).rejects.toThrow("disposed of. Create a new one.");
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toThrow(ExecutorStoppedError);
    expect(executor.calls).toEqual([]);
  });

  it("undoes an aborted start that nobody else waits for", async () => {
    const reason = new Error("mine");
    const executor = new ScriptedExecutor({ open: async (signal) => aborted(signal) });
    const controller = new AbortController();
    const started = executor.start({ signal: controller.signal });
    await sleep(5);
    controller.abort(reason);
    await expect(started).rejects.toBe(reason);
    expect(executor.calls).toEqual(["open", "close"]);
    await expect(executor.start({ signal: controller.signal })).rejects.toBe(reason);
    expect(executor.calls).toEqual(["open", "close"]);
  });

  it("leaves a stopped executor stopped when its start is aborted", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(50) });
    await executor.stop();
    await expect(executor.start({ signal: AbortSignal.timeout(5) })).rejects.toThrow(DOMException);
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toThrow(ExecutorStoppedError);
  });

  it("continues an aborted start that another call waits for", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(50) });
    const controller = new AbortController();
    const aborting = executor.start({ signal: controller.signal }).catch(String);
    const waiting = executor.start();
    controller.abort(new Error("mine"));
    expect(await aborting).toBe("Error: mine");
    await waiting;
    expect(executor.calls).toEqual(["open"]);
  });

  it("checks the options of start()", async () => {
    // @ts-expect-error: a wrong name, as JavaScript callers may write it
    await expect(new ScriptedExecutor().start({ singal: undefined, abort: 1 })).rejects.toThrow(
      'unknown option "abort"',
    );
  });

  it("stops an executor that is still starting", async () => {
    const executor = new ScriptedExecutor({ open: async (signal) => aborted(signal) });
    const started = executor.start().catch((error: unknown) => error);
    await sleep(5);
    await executor.stop();
    expect(await started).toBeInstanceOf(ExecutorStoppedError);
    expect(executor.calls).toEqual(["open", "close"]);
  });

  it("cleans up after a failed start, and tries again with the next call", async () => {
    let fails = true;
    const problem = new BackendUnavailableError("no daemon", { remedy: "Start it." });
    const executor = new ScriptedExecutor({
      open: async () => {
        if (fails) throw problem;
      },
    });
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toBe(problem);
    fails = false;
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "close", "open", "end b"]);
  });

  it("does not start again before it has cleaned up after a failed start", async () => {
    let closing = false;
    let fails = true;
    const executor = new ScriptedExecutor({
      open: async () => {
        expect(closing).toBe(false);
        if (fails) throw new Error("cannot open");
      },
      close: async () => {
        closing = true;
        await sleep(30);
        closing = false;
      },
    });
    const failed = executor.start().catch(String);
    await expect.poll(() => closing, { interval: 1 }).toBe(true);
    fails = false;
    const meanwhile = executor.start().catch(String);
    expect(await failed).toBe("Error: cannot open");
    expect(await meanwhile).toBe("Error: cannot open");
    await executor.start();
    expect(executor.calls).toEqual(["open", "close", "open"]);
  });

  it("finishes stop() only after cleaning up a failed start", async () => {
    let closed = false;
    const executor = new ScriptedExecutor({
      open: async () => {
        throw new Error("cannot open");
      },
      close: async () => {
        await sleep(30);
        closed = true;
      },
    });
    const failed = executor.start().catch(String);
    await expect.poll(() => executor.calls, { interval: 1 }).toEqual(["open", "close"]);
    await executor.stop();
    expect(closed).toBe(true);
    expect(await failed).toMatch("ExecutorStoppedError");
  });

  it("can start again after a failed stop", async () => {
    let fails = true;
    const executor = new ScriptedExecutor({
      close: async () => {
        if (fails) throw new Error("cannot close");
      },
    });
    await executor.start();
    await expect(executor.stop()).rejects.toThrow("cannot close");
    fails = false;
    await executor.start();
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
  });

  it("restarts without closing, so that the files stay, even twice at once", async () => {
    const executor = new ScriptedExecutor();
    await executor.start();
    await Promise.all([executor.restart(), executor.restart()]);
    expect(executor.calls).toEqual(["open", "reset"]);
    await executor.stop();
    await expect(executor.restart()).rejects.toThrow(ExecutorStoppedError);
    expect(executor.calls).toEqual(["open", "reset", "close"]);
  });

  it("closes a session that could not be reset, and opens another for the next call", async () => {
    const executor = new ScriptedExecutor({ resetFails: true });
    await executor.start();
    await expect(executor.restart()).rejects.toThrow("cannot reset");
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "reset", "close", "open", "end b"]);
  });

  it("ends running blocks when it restarts, and makes new calls wait for the restart", async () => {
    const executor = new ScriptedExecutor();
    const failed = executor.executeCodeBlocks([wait("a")]).catch((error: unknown) => error);
    await sleep(10);
    const restarted = executor.restart();
    const next = executor.executeCodeBlocks([say("b")]);
    await restarted;
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(await next).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "end a", "reset", "end b"]);
  });

  it("ends running blocks if it is stopped during a restart", async () => {
    const executor = new ScriptedExecutor();
    const failed = executor.executeCodeBlocks([wait("a")]).catch((error: unknown) => error);
    await sleep(10);
    const restarted = executor.restart().catch((error: unknown) => error);
    await executor.stop();
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(await restarted).toBeInstanceOf(ExecutorStoppedError);
    expect(executor.calls).toEqual(["open", "end a", "close"]);
  });

  it("tells its session once about stop(), but not about restart(), before it waits for blocks to end", async () => {
    const end = new AbortController();
    const told: string[] = [];
    const executor: ScriptedExecutor = new ScriptedExecutor({
      stopping: () => {
        told.push(executor.calls.join(" "));
        end.abort();
      },
      // Its own signal does not end it.
      async run({ code }) {
        if (code === "stuck") await aborted(end.signal);
        return { exitCode: 0 };
      },
    });
    await executor.executeCodeBlocks([say("a")]);
    await executor.restart();
    expect(told).toEqual([]);
    const failed = executor.executeCodeBlocks([say("stuck")]).catch((error: unknown) => error);
    await sleep(10);
    await Promise.all([executor.stop(), executor.stop()]);
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(told).toEqual(["open end a reset"]);
    expect(executor.calls).toEqual(["open", "end a", "reset", "end stuck", "close"]);
  });

  it("is stopped by `await using`", async () => {
    const executor = new ScriptedExecutor();
    {
      await using scoped = executor;
      await scoped.start();
    }
    expect(executor.calls).toEqual(["open", "close"]);
  });
});
