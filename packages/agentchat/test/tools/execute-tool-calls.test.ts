import { once } from "node:events";
import type { ToolCall, ToolResult } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { type Tool, tool } from "../../src/index.ts";
import { executeToolCalls as stream, type ToolCallOptions } from "../../src/tools/execute-tool-calls.ts";
import { call } from "../support/scripted-model.ts";

async function executeToolCalls(
  calls: readonly ToolCall[],
  options: Omit<ToolCallOptions, "maxResultCharacters">,
  maxResultCharacters: number = 1000,
): Promise<ToolResult[]> {
  const items = stream(calls, { ...options, maxResultCharacters });
  let step = await items.next();
  while (step.done !== true) step = await items.next();
  return step.value;
}

const echo: Tool = {
  name: "echo",
  description: "",
  parameters: { type: "object" },
  execute: (args) => args,
};

const divide = tool({
  name: "divide",
  description: "",
  parameters: z.object({ a: z.number(), b: z.number().default(2) }),
  execute: async ({ a, b }) => {
    if (b === 0) throw new RangeError("b is zero");
    return a / b;
  },
});

async function results(...calls: Parameters<typeof executeToolCalls>[0]): Promise<[string, boolean][]> {
  const all = await executeToolCalls(calls, { tools: [echo, divide], signal: undefined });
  return all.map(({ content, isError }) => [content, isError]);
}

describe("executeToolCalls", () => {
  it("returns text unchanged and data as JSON", async () => {
    const silent: Tool = { ...echo, name: "silent", execute: () => undefined };
    const text: Tool = { ...echo, name: "text", execute: () => "plain" };
    const calls = [call("silent"), call("text"), call("echo", { a: [1] })];
    const all = await executeToolCalls(calls, { tools: [silent, text, echo], signal: undefined });
    expect(all.map(({ content }) => content)).toEqual(["", "plain", '{"a":[1]}']);
  });

  it("limits what the model gets, and shows errors as errors", async () => {
    const gives = (output: () => unknown): Tool => ({ ...echo, execute: output });
    const signal = undefined;
    const resultOf = async (output: () => unknown) =>
      (await executeToolCalls([call("echo")], { tools: [gives(output)], signal }, 20))[0];
    expect(await resultOf(() => "x".repeat(100_000))).toMatchObject({
      isError: false,
      content: "xxxxxxxxxx\n[... 99980 characters left out ...]\nxxxxxxxxxx",
    });
    const fails = (): never => {
      throw new Error("y".repeat(100_000));
    };
    expect(await resultOf(fails)).toMatchObject({ isError: true, content: expect.stringContaining("left out") });
    expect(await resultOf(() => new RangeError("too far"))).toMatchObject({ isError: true, content: "too far" });
    expect(await resultOf(() => [new Error("no")])).toMatchObject({ isError: false, content: '["Error: no"]' });
  });

  it("ties each result to its call", async () => {
    const all = await executeToolCalls([call("echo", {}, "x")], { tools: [echo], signal: undefined });
    expect(all).toEqual([{ callId: "x", name: "echo", content: "{}", isError: false }]);
  });

  it("applies defaults from the zod schema", async () => {
    expect(await results(call("divide", { a: 4 }))).toEqual([["2", false]]);
  });

  it.each([
    ["a tool that throws", call("divide", { a: 1, b: 0 }), /^b is zero$/],
    ["arguments of the wrong shape", call("divide", { a: "1" }), /The arguments are not valid.*a/s],
    ["malformed JSON", call("echo", '{"a": '), /The arguments are not valid JSON/],
    ["JSON that is not an object", call("echo", "[1]"), /must be a JSON object/],
    ["an unknown tool", call("dance"), /There is no tool "dance". The tools are: echo, divide\./],
  ])("returns an error result for %s", async (_, bad, message) => {
    const [[content, isError] = ["", false], next] = await results(bad, call("echo"));
    expect(content).toMatch(message);
    expect(isError).toBe(true);
    expect(next).toEqual(["{}", false]);
  });

  it("accepts an empty string as no arguments", async () => {
    expect(await results(call("echo", ""))).toEqual([["{}", false]]);
  });

  it("runs calls in parallel and keeps their order", async () => {
    const ends = new EventTarget();
    const wait = tool({
      name: "wait",
      description: "",
      parameters: z.object({ name: z.string(), after: z.string().optional() }),
      execute: async ({ name, after }) => {
        if (after !== undefined) await once(ends, after);
        // In a later turn, when every call has begun.
        setImmediate(() => ends.dispatchEvent(new Event(name)));
        return name;
      },
    });
    const calls = [call("wait", { name: "first", after: "second" }), call("wait", { name: "second" })];
    const all = await executeToolCalls(calls, { tools: [wait], signal: undefined });
    expect(all.map(({ content }) => content)).toEqual(["first", "second"]);
  });

  it("runs nothing after an abort", async () => {
    const signal = AbortSignal.abort("stop");
    let ran = false;
    const spy: Tool = { ...echo, execute: () => (ran = true) };
    await expect(executeToolCalls([call("echo")], { tools: [spy], signal })).rejects.toBe("stop");
    expect(ran).toBe(false);
  });
});
