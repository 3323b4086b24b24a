import { setTimeout as sleep } from "node:timers/promises";
import {
  BackendUnavailableError,
  FunctionSetupError,
  FunctionWithRequirements,
  hostFunction,
  InvalidInputError,
  WorkspacePathError,
  type ExecutionEvent,
} from "@fenced/core";
import type { BlockOutcome, BlockRun, Sink } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { aborted, say, ScriptedExecutor, wait } from "./support/scripted-executor.ts";

describe("a run", () => {
  it("refuses host functions if the session has no way for their calls", async () => {
    const add = hostFunction({ name: "add", description: "Adds.", input: { type: "object" }, execute: () => 1 });
    for (const script of [{}, { hostFunctions: ["say"] }]) {
      const executor = new ScriptedExecutor(script, { functions: [add] });
      const running = executor.executeCodeBlocks([say("a")]);
      await expect(running).rejects.toThrow("ScriptedExecutor cannot run host functions");
    }
  });

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

  it("streams everything as it happens, and the result once, at the end", async () => {
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

  it("omits cleared output from the result, and puts an updated display in the place of the old one", async () => {
    const [first, second, update] = ["1", "2", "3"].map((text) => ({ data: { "text/plain": text }, files: [] }));
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      await sink.write({ type: "stdout", data: "gone" });
      if (first) await sink.write({ type: "display", display: first });
      await sink.write({ type: "clear" });
      await sink.write({ type: "stdout", data: "kept" });
      if (first && second && update) {
        await sink.write({ type: "display", display: first });
        await sink.write({ type: "display", display: second });
        await sink.write({ type: "display", display: update, replaces: first });
      }
      return { exitCode: 0 };
    };
    const result = await new ScriptedExecutor({ run }).executeCodeBlocks([say("a")]);
    expect(result.output).toBe("kept");
    expect(result.displays).toEqual([update, second]);
  });

  it("limits the size and number of the rich outputs of all blocks together, and says when it left some out", async () => {
    const large = { data: { "application/octet-stream": new Uint8Array(100 * 2 ** 20) }, files: [] };
    const small = { data: { "text/plain": "x" }, files: [] };
    const show =
      (...displays: readonly (typeof large | typeof small | "clear")[]) =>
      async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
        for (const each of displays) {
          await sink.write(each === "clear" ? { type: "clear" } : { type: "display", display: each });
        }
        return { exitCode: 0 };
      };
    const shown = async (run: ReturnType<typeof show>) => {
      const result = await new ScriptedExecutor({ run }).executeCodeBlocks([say("a"), say("b")]);
      return {
        sizes: result.displays.map((each) => (each === large ? "large" : "small")),
        truncated: result.truncated,
      };
    };
    expect(await shown(show(large, small))).toEqual({ sizes: ["large", "small", "large", "small"], truncated: false });
    expect(await shown(show(large, large, small))).toEqual({
      sizes: ["large", "large", "small", "small"],
      truncated: true,
    });
    expect(await shown(show(large, large, "clear", large))).toEqual({ sizes: ["large", "large"], truncated: false });
    const many = await shown(show(...Array.from({ length: 6000 }, () => small)));
    expect([many.sizes.length, many.truncated]).toEqual([10_000, true]);
  });

  it("runs nothing before the stream's first event is requested", async () => {
    const executor = new ScriptedExecutor();
    const stream = executor.streamCodeBlocks([say("a")]);
    await sleep(10);
    expect(executor.calls).toEqual([]);
    await stream[Symbol.asyncIterator]().return?.();
    expect(executor.calls).toEqual([]);
  });

  it("rejects reading a stream twice, since that would run the code twice", async () => {
    const stream = new ScriptedExecutor().streamCodeBlocks([say("a")]);
    for await (const event of stream) void event;
    expect(() => stream[Symbol.asyncIterator]()).toThrow(InvalidInputError);
  });

  it("does not count a slow reader's time towards the time limit", async () => {
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      const endedAt = performance.now();
      await sink.write({ type: "stdout", data: "last words".repeat(100_000) });
      return { exitCode: 0, endedAt };
    };
    const executor = new ScriptedExecutor({ run });
    const events: ExecutionEvent[] = [];
    for await (const event of executor.streamCodeBlocks([say("a")], { timeoutMs: 300 })) {
      if (event.type === "stdout") await sleep(500);
      events.push(event);
    }
    expect(events.at(-1)).toMatchObject({ result: { exitCode: 0, timedOut: false } });
  });

  it("fails a block in an unknown language without throwing", async () => {
    const result = await new ScriptedExecutor().executeCodeBlocks([say("a"), { language: "COBOL", code: "" }]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toBe('aunknown language "COBOL"; this executor runs: say, wait, fail\n');
  });

  it("fails a block whose file would be outside, according to its path or to the executor", async () => {
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      await sink.write({ type: "stdout", data: "" });
      throw new WorkspacePathError("through a link", { remedy: "Do not." });
    };
    for (const code of ["# filename: ../a\n", "# filename: link/a\n"]) {
      const result = await new ScriptedExecutor({ run }).executeCodeBlocks([say(code)]);
      expect(result).toMatchObject({ exitCode: 1, output: "Filename is not in the workspace\n" });
    }
  });

  it("rejects with the error of a broken backend, and works again afterwards", async () => {
    const broken = new BackendUnavailableError("gone", { remedy: "Wait." });
    let breaks = true;
    const executor = new ScriptedExecutor({
      async run({ code }, sink) {
        await sink.write({ type: "stdout", data: code });
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
    ["a timeout that is not a number", [say("")], { timeoutMs: Number.NaN }],
    ["a negative timeout", [say("")], { timeoutMs: -1 }],
    ["a variable with = in its name", [say("")], { env: { "A=B": "" } }],
    ["a variable with NUL", [say("")], { env: { A: "\0" } }],
    ["unsupported stdin", [say("")], { stdin: "x" }],
  ])("rejects %s", async (_, blocks, options) => {
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
  ])("rejects the option %j", (options) => {
    expect(() => new ScriptedExecutor({}, options)).toThrow(InvalidInputError);
  });
});

describe("time limit", () => {
  it("keeps the output so far, and ends the block before it returns", async () => {
    const executor = new ScriptedExecutor({}, { timeoutMs: 30 });
    const result = await executor.executeCodeBlocks([wait("a"), say("b")]);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, output: "a" });
    expect(executor.calls).toEqual(["open", "end a"]);
  });

  it("can be set for a call, and is off for Infinity", async () => {
    const executor = new ScriptedExecutor({}, { timeoutMs: 20 });
    const slow = new ScriptedExecutor({
      async run() {
        await sleep(60);
        return { exitCode: 0 };
      },
    });
    expect(await executor.executeCodeBlocks([wait("a")], { timeoutMs: 5 })).toMatchObject({ exitCode: 124 });
    expect(await slow.executeCodeBlocks([say("a")], { timeoutMs: Infinity })).toMatchObject({ exitCode: 0 });
    expect(await slow.executeCodeBlocks([say("a")], { timeoutMs: 1e12 })).toMatchObject({ exitCode: 0 });
  });

  it("is reported even if the executor throws when it is ended", async () => {
    const executor = new ScriptedExecutor({
      async run(_, sink) {
        await sink.write({ type: "stdout", data: "so far" });
        await aborted(sink.signal);
        throw new Error("killed");
      },
    });
    const result = await executor.executeCodeBlocks([say("a")], { timeoutMs: 20 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, output: "so far" });
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

  it("are not needed for a stateless executor", async () => {
    const executor = new ScriptedExecutor();
    await Promise.all(["a", "b", "c"].map(async (code) => executor.executeCodeBlocks([say(code)])));
    expect(executor.mostAtOnce).toBe(3);
  });
});

describe("functions", () => {
  it("that the executor cannot offer throw FunctionSetupError", async () => {
    const functions = [FunctionWithRequirements.fromString("def f(): pass")];
    const executor = new ScriptedExecutor({}, { functions });
    await expect(executor.executeCodeBlocks([say("a")])).rejects.toThrow(FunctionSetupError);
  });
});
