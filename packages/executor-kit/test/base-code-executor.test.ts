import { setTimeout as sleep } from "node:timers/promises";
import {
  BackendUnavailableError,
  ExecutorStoppedError,
  FunctionSetupError,
  FunctionWithRequirements,
  InvalidInputError,
  WorkspacePathError,
  type CodeBlock,
  type ExecutionEvent,
} from "@fenced/core";
import type { BlockEvent, BlockOutcome, BlockRun } from "@fenced/executor-kit";
import { describe, expect, it, onTestFinished } from "vitest";
import { aborted, ScriptedExecutor } from "./support/scripted-executor.ts";

const say = (code: string): CodeBlock => ({ language: "say", code });
const wait = (code: string): CodeBlock => ({ language: "wait", code });

describe("a run", () => {
  it("runs blocks in order and stops at the first that fails", async () => {
    const executor = new ScriptedExecutor();
    const result = await executor.executeCodeBlocks([say("a"), { language: "fail", code: "b" }, say("c")]);
    expect(result).toMatchObject({ exitCode: 3, output: "ab", timedOut: false, truncated: false, stateLost: false });
    expect(result.blocks.map((block) => [block.exitCode, block.output])).toEqual([
      [0, "a"],
      [3, "b"],
    ]);
    expect(result).not.toHaveProperty("codeFile");
  });

  it("tells everything as it happens, and the result once, last", async () => {
    const events: ExecutionEvent[] = [];
    for await (const event of new ScriptedExecutor().streamCodeBlocks([say("a"), say("b")])) events.push(event);
    expect(events.map((event) => event.type)).toEqual([
      "block-start",
      "stdout",
      "block-end",
      "block-start",
      "stdout",
      "block-end",
      "result",
    ]);
    expect(events.at(-1)).toMatchObject({ result: { output: "ab", exitCode: 0 } });
  });

  it("forgets in the result what the block cleared, and puts an update where the display before it was", async () => {
    const [first, second, update] = ["1", "2", "3"].map((text) => ({ data: { "text/plain": text }, files: [] }));
    const run = async function* (): AsyncGenerator<BlockEvent, BlockOutcome, void> {
      yield { type: "stdout", data: "gone" };
      if (first) yield { type: "display", display: first };
      yield { type: "clear" };
      yield { type: "stdout", data: "kept" };
      if (first && second && update) {
        yield { type: "display", display: first };
        yield { type: "display", display: second };
        yield { type: "display", display: update, replaces: first };
      }
      return { exitCode: 0 };
    };
    const result = await new ScriptedExecutor({ run }).executeCodeBlocks([say("a")]);
    expect(result.output).toBe("kept");
    expect(result.displays).toEqual([update, second]);
  });

  it("runs nothing before the stream's first event is asked for", async () => {
    const executor = new ScriptedExecutor();
    const stream = executor.streamCodeBlocks([say("a")]);
    await sleep(10);
    expect(executor.calls).toEqual([]);
    await stream[Symbol.asyncIterator]().return?.();
    expect(executor.calls).toEqual([]);
  });

  it("refuses to read a stream twice, since that would run the code twice", async () => {
    const stream = new ScriptedExecutor().streamCodeBlocks([say("a")]);
    for await (const event of stream) void event;
    expect(() => stream[Symbol.asyncIterator]()).toThrow(InvalidInputError);
  });

  it("does not count the time that a slow reader takes", async () => {
    const run = async function* (): AsyncGenerator<BlockEvent, BlockOutcome, void> {
      const endedAt = performance.now();
      yield { type: "stdout", data: "last words" };
      return { exitCode: 0, endedAt };
    };
    const executor = new ScriptedExecutor({ run });
    const events: ExecutionEvent[] = [];
    for await (const event of executor.streamCodeBlocks([say("a")], { timeoutMs: 20 })) {
      if (event.type === "stdout") await sleep(60);
      events.push(event);
    }
    expect(events.at(-1)).toMatchObject({ result: { exitCode: 0, timedOut: false } });
  });

  it("fails a block in an unknown language without throwing", async () => {
    const result = await new ScriptedExecutor().executeCodeBlocks([say("a"), { language: "COBOL", code: "" }]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toBe('aunknown language "COBOL"; this executor runs: say, wait, fail\n');
  });

  it("fails a block whose file would be outside, as the path or as the executor says", async () => {
    const run = async function* () {
      yield { type: "stdout" as const, data: "" };
      throw new WorkspacePathError("through a link", { remedy: "Do not." });
    };
    for (const code of ["# filename: ../a\n", "# filename: link/a\n"]) {
      const result = await new ScriptedExecutor({ run }).executeCodeBlocks([say(code)]);
      expect(result).toMatchObject({ exitCode: 1, output: "Filename is not in the workspace\n" });
    }
  });

  it("rejects with the error of a backend that breaks down, and works again", async () => {
    const broken = new BackendUnavailableError("gone", { remedy: "Wait." });
    let breaks = true;
    const executor = new ScriptedExecutor({
      async *run({ code }) {
        yield { type: "stdout", data: code };
        if (breaks) throw broken;
        return { exitCode: 0 };
      },
    });
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toBe(broken);
    breaks = false;
    expect(await executor.executeCodeBlocks([say("a")])).toMatchObject({ exitCode: 0, output: "a" });
  });

  it.each([
    ["no blocks", [], {}],
    ["a timeout of 0", [say("")], { timeoutMs: 0 }],
    ["a timeout that is no number", [say("")], { timeoutMs: Number.NaN }],
    ["a negative timeout", [say("")], { timeoutMs: -1 }],
    ["a variable with = in its name", [say("")], { env: { "A=B": "" } }],
    ["a variable with NUL", [say("")], { env: { A: "\0" } }],
    ["stdin where there is none", [say("")], { stdin: "x" }],
  ])("refuses %s", async (_, blocks, options) => {
    const executor = new ScriptedExecutor();
    await expect(executor.executeCodeBlocks(blocks, options)).rejects.toThrow(InvalidInputError);
    expect(executor.calls).toEqual([]);
  });

  it.each([
    { timeoutMs: -1 },
    { maxOutputBytes: 1.5 },
    { maxOutputBytes: -1 },
    { functionsModule: "a-b" },
    { env: { "": "" } },
  ])("refuses the option %j", (options) => {
    expect(() => new ScriptedExecutor({}, options)).toThrow(InvalidInputError);
  });
});

describe("time limit", () => {
  it("keeps the output so far and ends the block before it answers", async () => {
    const executor = new ScriptedExecutor({}, { timeoutMs: 30 });
    const result = await executor.executeCodeBlocks([wait("a"), say("b")]);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, output: "a" });
    expect(executor.calls).toEqual(["open", "end a"]);
  });

  it("is the call's where it gives one, and none for Infinity", async () => {
    const executor = new ScriptedExecutor({}, { timeoutMs: 20 });
    const slow = new ScriptedExecutor({
      async *run() {
        yield { type: "stdout", data: "" };
        await sleep(60);
        return { exitCode: 0 };
      },
    });
    expect(await executor.executeCodeBlocks([wait("a")], { timeoutMs: 5 })).toMatchObject({ exitCode: 124 });
    expect(await slow.executeCodeBlocks([say("a")], { timeoutMs: Infinity })).toMatchObject({ exitCode: 0 });
    expect(await slow.executeCodeBlocks([say("a")], { timeoutMs: 1e12 })).toMatchObject({ exitCode: 0 });
  });

  it("counts also if the executor throws because it was ended", async () => {
    const executor = new ScriptedExecutor({
      async *run({ signal }) {
        yield { type: "stdout", data: "so far" };
        await aborted(signal);
        throw new Error("killed");
      },
    });
    const result = await executor.executeCodeBlocks([say("a")], { timeoutMs: 20 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, output: "so far" });
  });
});

describe("abort", () => {
  const reason = new Error("my reason");

  it("before the start runs nothing", async () => {
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

  it("works while the executor is starting, which goes on for others", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(50) });
    const controller = new AbortController();
    const call = executor.executeCodeBlocks([say("a")], { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "end b"]);
  });

  it("works while waiting for the turn, which the next one gets", async () => {
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
    const run = async function* ({ code }: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
      ran.push(code);
      yield { type: "stdout", data: code };
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
    await expect(following(() => controller.abort(reason))).rejects.toBe(reason);
    expect(ran).toEqual([]);
  });

  it("leaves an event alone that somebody waits for, though the block uses its memory again", async () => {
    const run = async function* ({ signal }: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
      const reused = Buffer.from("a");
      await aborted(signal);
      yield { type: "stdout", data: reused };
      yield { type: "stdout", data: reused.fill("b") };
      reused.fill("c");
      return { exitCode: 0 };
    };
    const signal = AbortSignal.timeout(20);
    const texts: string[] = [];
    const following = async (): Promise<void> => {
      for await (const event of new ScriptedExecutor({ run }).streamCodeBlocks([say("")], { signal })) {
        if (event.type === "stdout") texts.push(event.text);
      }
    };
    await expect(following()).rejects.toThrow(DOMException);
    expect(texts).toEqual(["a", "b"]);
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

  it("leaves no listener behind on a signal that lives long", async () => {
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
  it("ends the block, and comes back when it has ended", async () => {
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

  it("gives the turn back", async () => {
    const executor = new ScriptedExecutor({ stateful: true });
    for await (const event of executor.streamCodeBlocks([wait("a")])) if (event.type === "stdout") break;
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
  });
});

describe("a stream that nobody reads on", () => {
  const flood = (seen: string[]) =>
    async function* ({ signal }: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
      const reused = Buffer.from("a0");
      while (!signal.aborted) {
        yield { type: "stdout", data: reused };
        reused[1] = (reused[1] ?? 0) + 1;
      }
      yield { type: "stdout", data: reused.fill("z") };
      yield { type: "stdout", data: reused.fill("y") };
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

  it("is ended by an abort; what it still put out is there for whoever reads on, then the reason", async () => {
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
    expect(texts).toEqual(["zz", "yy"]);
  });
});

describe("turns", () => {
  it("come one after another, first come first served, for a stateful executor", async () => {
    const executor = new ScriptedExecutor({ stateful: true });
    const codes = ["a", "b", "c", "d", "e"];
    await Promise.all(codes.map(async (code) => executor.executeCodeBlocks([say(code)])));
    expect(executor.calls).toEqual(["open", ...codes.map((code) => `end ${code}`)]);
    expect(executor.mostAtOnce).toBe(1);
  });

  it("are not needed for others", async () => {
    const executor = new ScriptedExecutor();
    await Promise.all(["a", "b", "c"].map(async (code) => executor.executeCodeBlocks([say(code)])));
    expect(executor.mostAtOnce).toBe(3);
  });
});

describe("life cycle", () => {
  it("shares one start", async () => {
    const executor = new ScriptedExecutor({ open: async () => sleep(10) });
    await Promise.all([executor.start(), executor.start(), executor.executeCodeBlocks([say("a")])]);
    expect(executor.calls).toEqual(["open", "end a"]);
  });

  it("stops once, and not at all if it was not started", async () => {
    const executor = new ScriptedExecutor();
    await executor.stop();
    await executor.start();
    await Promise.all([executor.stop(), executor.stop()]);
    await executor.stop();
    expect(executor.calls).toEqual(["open", "close"]);
  });

  it("ends what runs when it stops, and may start again", async () => {
    const executor = new ScriptedExecutor();
    const call = executor.executeCodeBlocks([wait("a")]);
    const failed = call.catch((error: unknown) => error);
    await sleep(10);
    const stopped = executor.stop();
    const again = executor.executeCodeBlocks([say("b")]);
    await stopped;
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(await again).toMatchObject({ output: "b" });
    expect(executor.calls).toEqual(["open", "end a", "close", "open", "end b"]);
  });

  it("stops an executor that is still starting", async () => {
    const executor = new ScriptedExecutor({ open: async (signal) => aborted(signal) });
    const started = executor.start();
    await sleep(5);
    await executor.stop();
    await started;
    expect(executor.calls).toEqual(["open", "close"]);
  });

  it("cleans up after a start that failed, and tries again with the next call", async () => {
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

  it("does not start again before it has cleaned up after a start that failed", async () => {
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
    const again = executor.start();
    expect(await failed).toBe("Error: cannot open");
    await again;
    expect(executor.calls).toEqual(["open", "close", "open"]);
  });

  it("stops only when it has cleaned up after a start that failed", async () => {
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
    expect(await failed).toBe("Error: cannot open");
  });

  it("starts again after a stop that failed", async () => {
    let fails = true;
    const executor = new ScriptedExecutor({
      close: async () => {
        if (fails) throw new Error("cannot close");
      },
    });
    await executor.start();
    await expect(executor.stop()).rejects.toThrow("cannot close");
    fails = false;
    expect(await executor.executeCodeBlocks([say("b")])).toMatchObject({ output: "b" });
  });

  it("restarts without closing, so that the files stay, also if two do it at once", async () => {
    const executor = new ScriptedExecutor();
    await executor.start();
    await Promise.all([executor.restart(), executor.restart()]);
    expect(executor.calls).toEqual(["open", "reset"]);
    await executor.stop();
    await executor.restart();
    expect(executor.calls).toEqual(["open", "reset", "close", "open"]);
  });

  it("ends what runs when it restarts; calls made meanwhile wait for it", async () => {
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

  it("ends what runs if it is stopped in the moment of a restart", async () => {
    const executor = new ScriptedExecutor();
    const failed = executor.executeCodeBlocks([wait("a")]).catch((error: unknown) => error);
    await sleep(10);
    const restarted = executor.restart().catch((error: unknown) => error);
    await executor.stop();
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    expect(await restarted).toBeInstanceOf(ExecutorStoppedError);
    expect(executor.calls).toEqual(["open", "end a", "close"]);
  });

  it("stops by `await using`", async () => {
    const executor = new ScriptedExecutor();
    {
      await using scoped = executor;
      await scoped.start();
    }
    expect(executor.calls).toEqual(["open", "close"]);
  });
});

describe("functions", () => {
  it("that the executor cannot offer are an error that says so", async () => {
    const functions = [FunctionWithRequirements.fromString("def f(): pass")];
    const executor = new ScriptedExecutor({}, { functions });
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toThrow(FunctionSetupError);
  });
});
