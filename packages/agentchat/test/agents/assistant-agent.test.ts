import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { InvalidInputError, ModelClientError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import * as mini from "zod/mini";
import { z as zod3 } from "zod/v3";
import {
  AssistantAgent,
  type AssistantAgentOptions,
  handoffMessage,
  multiModalMessage,
  textMessage,
  tool,
} from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { call, never, type ScriptedAnswer, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

function assistant(
  answers: readonly ScriptedAnswer[],
  options: Partial<AssistantAgentOptions> = {},
): { agent: AssistantAgent; modelClient: ScriptedModel } {
  const modelClient = new ScriptedModel(answers);
  return { modelClient, agent: new AssistantAgent({ name: "helper", modelClient, ...options }) };
}

const hello = [textMessage({ source: "user", content: "hello" })];

describe("AssistantAgent", () => {
  it("refuses schemas that are neither of zod 4 nor JSON Schema", () => {
    const withTool = (parameters: object): object => ({
      tools: [{ name: "raw", description: "", parameters, execute: () => "" }],
    });
    const old = zod3.object({ a: zod3.number() });
    for (const options of [withTool(old), withTool(mini.object({})), { outputSchema: old }]) {
      expect(() => assistant([], options)).toThrow('import from "zod/v4"');
    }
  });

  it.each([
    ["content-filter", "content filter withheld it"],
    ["length", "Raise maxOutputTokens"],
  ] as const)("says why there is no answer: %s", async (finishReason, reason) => {
    const { agent } = assistant([{ content: "", finishReason }]);
    await expect(agent.onMessages(hello)).rejects.toThrow(reason);
  });

  it("tells programs that an answer was cut", async () => {
    const { agent } = assistant([{ content: "Half an", finishReason: "length" }, "whole"]);
    expect((await agent.onMessages(hello)).chatMessage.metadata).toEqual({ finishReason: "length" });
    expect((await agent.onMessages(hello)).chatMessage.metadata).toEqual({});
    const structured = assistant([{ content: '{"a":', finishReason: "length" }], { outputSchema: z.json() });
    await expect(structured.agent.onMessages(hello)).rejects.toThrow("is not whole: the model was stopped (length)");
  });

  it("refuses a state with the memory of a tool that it does not have", async () => {
    const remembering = { ...add, saveState: async () => ({ sum: 3 }) };
    const state = await assistant([], { tools: [remembering] }).agent.saveState();
    await expect(assistant([]).agent.loadState(state)).rejects.toThrow('the memory of a tool "add"');
  });

  it("remembers which part of a thought is reasoning, also in its state", async () => {
    const answer = { content: [call("add", { a: 1, b: 2 })], thought: "Hm.\n\nI add.", reasoning: "Hm." };
    const first = assistant([answer, "3"], { tools: [add], maxToolIterations: 2 });
    await first.agent.onMessages(hello);
    const second = assistant(["yes"], { tools: [add] });
    await second.agent.loadState(throughJson(await first.agent.saveState()));
    await second.agent.onMessages(hello);
    expect(second.modelClient.requests[0]?.messages).toContainEqual(
      expect.objectContaining({ role: "assistant", thought: "Hm.\n\nI add.", reasoning: "Hm." }),
    );
  });

  it("answers with the model's text", async () => {
    const { agent, modelClient } = assistant(["hi"], { systemMessage: "Be kind." });
    const { chatMessage, innerMessages } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({ type: "TextMessage", source: "helper", content: "hi" });
    expect(chatMessage.modelsUsage).toEqual({ promptTokens: 10, completionTokens: 5 });
    expect(innerMessages).toEqual([]);
    expect(modelClient.requests[0]?.messages).toEqual([
      { role: "system", content: "Be kind." },
      { role: "user", content: "hello", source: "user" },
    ]);
    expect(modelClient.requests[0]?.options.tools).toBeUndefined();
  });

  it("runs a task", async () => {
    const { agent } = assistant(["hi"]);
    expect(await agent.run({ task: "hello" })).toMatchObject({ messages: [{ source: "user" }, { content: "hi" }] });
  });

  it("remembers the conversation until it is reset", async () => {
    const { agent, modelClient } = assistant(["one", "two", "three"], { systemMessage: "" });
    await agent.run({ task: "1" });
    await agent.run({ task: "2" });
    await agent.reset();
    await agent.run({ task: "3" });
    const seen = modelClient.requests.map(({ messages }) => messages.map(({ content }) => content));
    expect(seen).toEqual([["1"], ["1", "one", "2"], ["3"]]);
  });

  it("streams the text in chunks before the complete message", async () => {
    const { agent } = assistant([{ content: "a b", thought: "hm" }], { modelClientStream: true });
    const items = await collect(agent.onMessagesStream(hello));
    const chunk = "ModelClientStreamingChunkEvent";
    expect(types(items)).toEqual([chunk, chunk, "ThoughtEvent", "end"]);
    const last = items.at(-1);
    expect(last).toMatchObject({ chatMessage: { content: "a b" }, innerMessages: [{ type: "ThoughtEvent" }] });
    expect(items[0]).toMatchObject({
      fullMessageId: last !== undefined && "chatMessage" in last ? last.chatMessage.id : "",
    });
  });

  it("saves and loads its memory through JSON", async () => {
    const first = assistant([[call("add", { a: 1, b: 2 })], "three"], { tools: [add], reflectOnToolUse: true });
    await first.agent.run({ task: "1 + 2?" });
    const second = assistant(["yes"], { systemMessage: "" });
    await second.agent.loadState(throughJson(await first.agent.saveState()));
    await second.agent.run({ task: "sure?" });
    expect(second.modelClient.requests[0]?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
    await expect(second.agent.loadState({})).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("passes the context of a handoff to the model", async () => {
    const { agent, modelClient } = assistant(["ok"], { systemMessage: "" });
    const context = [{ role: "assistant" as const, content: "found it", source: "finder" }];
    await agent.onMessages([handoffMessage({ source: "finder", content: "take over", target: "helper", context })]);
    expect(modelClient.requests[0]?.messages).toEqual([
      ...context,
      { role: "user", content: "take over", source: "finder" },
    ]);
  });

  it("describes images in text to a model without vision", async () => {
    const content = [
      { type: "text", text: "Look:" },
      { type: "image", url: "data:image/png;base64,AAAA", path: "/work/plot.png" },
      { type: "image", url: "https://example.org/a.png" },
      { type: "image", url: "data:image/png;base64,AAAA" },
    ] as const;
    const blind = assistant(["ok"], { systemMessage: "" });
    await blind.agent.onMessages([multiModalMessage({ source: "user", content })]);
    expect(blind.modelClient.requests[0]?.messages[0]?.content).toBe(
      "Look:\n[image: /work/plot.png]\n[image: https://example.org/a.png]\n[image]",
    );
    const modelClient = new ScriptedModel(["ok"], { vision: true });
    const seeing = new AssistantAgent({ name: "helper", modelClient, systemMessage: "" });
    await seeing.onMessages([multiModalMessage({ source: "user", content })]);
    expect(modelClient.requests[0]?.messages[0]?.content).toEqual(content);
  });
});

describe("AssistantAgent with tools", () => {
  it("answers with the results of one round of calls", async () => {
    const { agent, modelClient } = assistant([[call("add", { a: 1, b: 2 })]], { tools: [add] });
    const { chatMessage, innerMessages } = await agent.onMessages(hello);
    expect(types(innerMessages)).toEqual(["ToolCallRequestEvent", "ToolCallExecutionEvent"]);
    expect(chatMessage).toMatchObject({ type: "ToolCallSummaryMessage", content: "3" });
    expect(modelClient.requests[0]?.options.tools).toEqual([
      {
        name: "add",
        description: "Adds two numbers.",
        parameters: {
          type: "object",
          properties: { a: { type: "number" }, b: { type: "number" } },
          required: ["a", "b"],
        },
      },
    ]);
  });

  it("sends the model the schema of a tool's input, not of its transformed output", async () => {
    const page = tool({
      name: "page",
      description: "",
      parameters: z.object({ number: z.string().transform(Number), size: z.number().default(10) }),
      execute: ({ number, size }) => number * size,
    });
    const { agent, modelClient } = assistant([[call("page", { number: "3" })]], { tools: [page] });
    expect((await agent.onMessages(hello)).chatMessage.content).toBe("30");
    expect(modelClient.requests[0]?.options.tools?.[0]?.parameters).toEqual({
      type: "object",
      properties: { number: { type: "string" }, size: { type: "number", default: 10 } },
      required: ["number"],
    });
  });

  it("formats the summary in one pass", async () => {
    const echo = tool({
      name: "echo",
      description: "",
      parameters: z.object({ text: z.string() }),
      execute: ({ text }) => text,
    });
    const calls = [call("echo", { text: "{toolName} $&" }, "1"), call("echo", { text: "b" }, "2")];
    const { agent } = assistant([calls], {
      tools: [echo],
      toolCallSummaryFormat: "{toolName}{arguments}={result} ({isError})",
    });
    const { chatMessage } = await agent.onMessages(hello);
    expect(chatMessage.content).toBe('echo{"text":"{toolName} $&"}={toolName} $& (false)\necho{"text":"b"}=b (false)');
  });

  it("reflects on the results", async () => {
    const { agent, modelClient } = assistant([[call("add", { a: 1, b: 2 })], "It is three."], {
      tools: [add],
      reflectOnToolUse: true,
    });
    const { chatMessage } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({ type: "TextMessage", content: "It is three." });
    expect(modelClient.requests[1]?.options.tools).toBeUndefined();
    expect(modelClient.requests[1]?.messages.at(-1)).toEqual({
      role: "tool",
      content: [{ callId: "call-add", name: "add", content: "3", isError: false }],
    });
  });

  it("lets the model call tools several times", async () => {
    const answers = [[call("add", { a: 1, b: 2 })], [call("add", { a: 3, b: 4 })], "done"];
    const { agent, modelClient } = assistant(answers, { tools: [add], maxToolIterations: 5 });
    const { chatMessage, innerMessages } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({ type: "TextMessage", content: "done" });
    expect(innerMessages).toHaveLength(4);
    expect(modelClient.requests).toHaveLength(3);
  });

  it("emits text that comes with tool calls as a thought, with the id of its chunks", async () => {
    const answer = { content: [call("add", { a: 1, b: 2 })], thought: "let me add" };
    const { agent } = assistant([answer], { tools: [add], modelClientStream: true });
    const items = await collect(agent.onMessagesStream(hello));
    const thought = items.find((item) => "type" in item && item.type === "ThoughtEvent");
    expect(thought).toMatchObject({ content: "let me add" });
    expect(items[0]).toMatchObject({ fullMessageId: thought !== undefined && "id" in thought ? thought.id : "" });
  });

  it("rejects with a ModelClientError if the model calls tools while it reflects", async () => {
    const calls = [call("add", { a: 1, b: 2 })];
    const { agent } = assistant([calls, calls], { tools: [add], reflectOnToolUse: true });
    await expect(agent.onMessages(hello)).rejects.toSatisfy(ModelClientError.isInstance);
  });

  it("rejects duplicate tool names, zero iterations, and a model that cannot call tools", () => {
    expect(() => assistant([], { tools: [add, add] })).toThrow('cannot have a tool or handoff named "add"');
    expect(() => assistant([], { tools: [add], handoffs: [{ target: "x", name: "add" }] })).toThrow(
      'handoff named "add"',
    );
    expect(() => assistant([], { maxToolIterations: 0 })).toThrow('"maxToolIterations" is 0');
    const modelClient = new ScriptedModel([], { functionCalling: false });
    expect(() => new AssistantAgent({ name: "a", modelClient, handoffs: ["b"] })).toThrow("cannot call tools");
  });
});

describe("AssistantAgent with handoffs", () => {
  it("hands off with the results of the other tool calls as context", async () => {
    const calls = [call("add", { a: 1, b: 2 }), call("transfer_to_critic"), call("transfer_to_user")];
    const { agent } = assistant([calls], { tools: [add], handoffs: ["critic", { target: "user", message: "yours" }] });
    const { chatMessage } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({
      type: "HandoffMessage",
      target: "critic",
      content: "critic, please go on from here.",
      context: [
        { role: "assistant", content: [{ name: "add" }] },
        { role: "tool", content: [{ name: "add", content: "3" }] },
      ],
    });
  });

  it("omits the context if no other tool was called", async () => {
    const { agent } = assistant([[call("transfer_to_user")]], { handoffs: [{ target: "user", message: "yours" }] });
    const { chatMessage } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({ type: "HandoffMessage", target: "user", content: "yours" });
    expect("context" in chatMessage).toBe(false);
  });
});

describe("AssistantAgent, aborted", () => {
  it.each([false, true])("rejects with the reason during a model call (stream: %s)", async (modelClientStream) => {
    const controller = new AbortController();
    const { agent } = assistant([never(() => controller.abort("stop"))], { modelClientStream });
    await expect(agent.onMessages(hello, { signal: controller.signal })).rejects.toBe("stop");
    expect(await agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });

  it("does not wait for a model client that ignores the signal", async () => {
    const controller = new AbortController();
    const deaf: ScriptedAnswer = () => {
      controller.abort("stop");
      return new Promise(() => {});
    };
    await expect(assistant([deaf]).agent.onMessages(hello, { signal: controller.signal })).rejects.toBe("stop");
  });

  it("passes the signal to tools, waits for them, and forgets the turn", async () => {
    const controller = new AbortController();
    let ended = false;
    const slow = tool({
      name: "slow",
      description: "",
      parameters: z.object({}),
      execute: async (_, { signal }) => {
        const aborted = once(signal ?? new EventTarget(), "abort");
        controller.abort("stop");
        await aborted;
        await delay(20);
        ended = true;
      },
    });
    const { agent } = assistant([[call("slow")]], { tools: [slow] });
    await expect(agent.onMessages(hello, { signal: controller.signal })).rejects.toBe("stop");
    expect(ended).toBe(true);
    expect(await agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });

  it("forgets a turn if the consumer leaves its stream early", async () => {
    const { agent } = assistant(["a b c"], { modelClientStream: true });
    for await (const _ of agent.onMessagesStream(hello)) break;
    expect(await agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });

  it("keeps a turn if the consumer leaves its stream at the response", async () => {
    const { agent } = assistant(["a"]);
    for await (const item of agent.onMessagesStream(hello)) if ("chatMessage" in item) break;
    expect(await agent.saveState()).toMatchObject({ modelContext: { messages: [{}, { content: "a" }] } });
  });
});
