import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError, type ExecutionEvent } from "@fenced/core";
import type { BlockOutcome, BlockRun, Sink } from "@fenced/executor-kit";
import { describe, expect, it, onTestFinished } from "vitest";
import { aborted, say, ScriptedExecutor, wait } from "./support/scripted-executor.ts";

describe("abort", () => {
  const reason = new Error("my reason");

  it("before the call runs nothing", async () => {
    const executor = new ScriptedExecutor();
    await expect(executor.executeCodeBlocks([say("a")], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(executor.calls).toEqual([]);
  });

  it("rejects with the reason once the block has ended", async () => {
    const executor = new ScriptedExecutor();
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    await expect(executor.executeCodeBlocks([wait("a")], { signal: controller.signal })).rejects.toBe(reason);
    expect(executor.running).toBe(0);
  });

  it("works while the executor is starting, which continues for other calls", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(50) });
    const controller = new AbortController();
    const call = executor.executeCodeBlocks([say("a")], { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "end b"]);
  });

  it("works while a call waits for its turn, which the next call gets", async () => {
    const executor = new ScriptedExecutor({ stateful: true });
    const first = executor.executeCodeBlocks([wait("a")], { timeoutMs: 50 });
    const controller = new AbortController();
    const second = executor.executeCodeBlocks([say("b")], { signal: controller.signal });
    const third = executor.executeCodeBlocks([say("c")]);
    controller.abort(reason);
    await expect(second).rejects.toBe(reason);
    expect(await first).toMatchObject({ timedOut: true });
    expect(await third).toMatchObject({ output: "c" });
    expect(executor.calls).toEqual(["open", "end a", "end c"]);
  });

  it("at a block's start keeps that block from running", async () => {
    const ran: string[] = [];
    const run = async ({ code }: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      ran.push(code);
      await sink.write({ type: "stdout", data: code });
      return { exitCode: 0 };
    };
    const executor = new ScriptedExecutor({ run });
    const controller = new AbortController();
    const following = async (end: () => unknown): Promise<void> => {
      for await (const event of executor.streamCodeBlocks([say("a")], { signal: controller.signal })) {
        if (event.type === "block-start") await end();
      }
    };
    await expect(following(() => executor.stop())).rejects.toThrow(ExecutorStoppedError);
    await executor.start();
    await expect(following(() => controller.abort(reason))).rejects.toBe(reason);
    expect(ran).toEqual([]);
  });

  it("drops output that comes after it", async () => {
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      await sink.write({ type: "stdout", data: "before" });
      await aborted(sink.signal);
      await sink.write({ type: "stdout", data: "after" });
      await sink.write({ type: "stderr", data: "long after" });
      return { exitCode: 0 };
    };
    const controller = new AbortController();
    const { signal } = controller;
    const texts: string[] = [];
    const following = async (): Promise<void> => {
      for await (const event of new ScriptedExecutor({ run }).streamCodeBlocks([say("")], { signal })) {
        if (!("text" in event)) continue;
        texts.push(event.text);
        setTimeout(() => controller.abort(reason), 20);
      }
    };
    await expect(following()).rejects.toBe(reason);
    expect(texts).toEqual(["before"]);
  });

  it("can be shared by many calls at once without a warning", async () => {
    const warnings: unknown[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    onTestFinished(() => void process.off("warning", warn));
    const { signal } = new AbortController();
    const executor = new ScriptedExecutor();
    const calls = Array.from({ length: 30 }, async () => executor.executeCodeBlocks([say("a")], { signal }));
    await Promise.all(calls);
    await sleep(1);
    expect(warnings).toEqual([]);
  });

  it("leaves no listener behind on a long-lived signal", async () => {
    const controller = new AbortController();
    let listening = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...words: Parameters<typeof add>) => {
      listening += 1;
      add(...words);
    };
    signal.removeEventListener = (...words: Parameters<typeof remove>) => {
      listening -= 1;
      remove(...words);
    };
    const executor = new ScriptedExecutor({ stateful: true });
    for (let round = 0; round < 5; round += 1) await executor.executeCodeBlocks([say("a")], { signal });
    expect(listening).toBe(0);
  });
});

describe("leaving the stream", () => {
  it("ends the block, and waits until it has ended", async () => {
    const executor = new ScriptedExecutor();
    for await (const event of executor.streamCodeBlocks([wait("a"), say("b")])) if (event.type === "stdout") break;
    expect(executor.calls).toEqual(["open", "end a"]);
  });

  it("does not wait for an event that never comes", async () => {
    const executor = new ScriptedExecutor();
    const iterator = executor.streamCodeBlocks([wait("a")])[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.next();
    const pending = iterator.next().catch((error: unknown) => error);
    await iterator.return?.();
    expect(executor.running).toBe(0);
    expect(await pending).toBeInstanceOf(Error);
  });

  it("gives up the turn", async () => {
    const executor = new ScriptedExecutor({ stateful: true });
    for await (const event of executor.streamCodeBlocks([wait("a")])) if (event.type === "stdout") break;
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
  });
});

describe("a stream that nobody reads any further", () => {
  const flood =
    (seen: string[]) =>
    async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      const reused = Buffer.from("a0");
      while (!sink.signal.aborted) {
        await sink.write({ type: "stdout", data: reused });
        reused[1] = (reused[1] ?? 0) + 1;
      }
      await sink.write({ type: "stdout", data: reused.fill("z") });
      await sink.write({ type: "stdout", data: reused.fill("y") });
      seen.push("dead");
      return { exitCode: 0 };
    };

  const readOn = async (iterator: AsyncIterator<ExecutionEvent>, texts: string[] = []): Promise<void> => {
    for (;;) {
      const { value, done } = await iterator.next();
      if (done === true) return;
      if (value.type === "stdout") texts.push(value.text);
    }
  };

  it("does not keep stop() or restart() from ending, and then rejects", async () => {
    for (const end of ["stop", "restart"] as const) {
      const seen: string[] = [];
      const executor = new ScriptedExecutor({ run: flood(seen) });
      const iterator = executor.streamCodeBlocks([say("a")])[Symbol.asyncIterator]();
      await iterator.next();
      await iterator.next();
      await executor[end]();
      expect(seen).toEqual(["dead"]);
      await expect(readOn(iterator)).rejects.toThrow(ExecutorStoppedError);
      await executor.stop();
    }
  });

  it("ends when it is aborted, and the next read rejects with the reason", async () => {
    const seen: string[] = [];
    const executor = new ScriptedExecutor({ run: flood(seen) });
    const controller = new AbortController();
    const iterator = executor.streamCodeBlocks([say("a")], { signal: controller.signal })[Symbol.asyncIterator]();
    await iterator.next();
    expect((await iterator.next()).value).toMatchObject({ text: "a0" });
    controller.abort(new Error("mine"));
    await sleep(10);
    expect(seen).toEqual(["dead"]);
    const texts: string[] = [];
    await expect(readOn(iterator, texts)).rejects.toThrow("mine");
    expect(texts).toEqual([]);
  });
});
