import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { AssistantAgent, ListMemory, type Memory, type MemoryContent } from "../../src/index.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";

describe("ListMemory", () => {
  it("keeps what it is told, until it is cleared", async () => {
    const memory = new ListMemory({ contents: [{ content: "one" }] });
    await memory.add({ content: '{"two":2}', mimeType: "application/json", metadata: { from: "test" } });
    expect((await memory.query()).map(({ content }) => content)).toEqual(["one", '{"two":2}']);
    await memory.clear();
    expect(memory.contents).toEqual([]);
  });

  it("rejects what is no content", async () => {
    await expect(new ListMemory().add({ text: "x" } as unknown as MemoryContent)).rejects.toThrow(InvalidInputError);
  });
});

describe("An AssistantAgent with memories", () => {
  it("tells its model what they know now, once, and shows it", async () => {
    const memory = new ListMemory({ name: "user" });
    await memory.add({ content: "The user likes short answers." });
    const asked: string[] = [];
    const facts: Memory = {
      name: "facts",
      query: async (text) => {
        asked.push(text);
        return [{ content: "Paris is in France." }];
      },
      add: async () => {},
      clear: async () => {},
    };
    const model = new ScriptedModel([[call("nothing")], "Yes.", "No."]);
    const agent = new AssistantAgent({
      name: "a",
      modelClient: model,
      memory: [memory, facts],
      reflectOnToolUse: true,
    });
    const { messages } = await agent.run({ task: "Is Paris in France?" });
    const known = [
      "What you know besides the conversation:",
      "1. The user likes short answers.",
      "2. Paris is in France.",
    ].join("\n");
    expect(model.requests.map((request) => request.messages[1])).toEqual([
      { role: "system", content: known },
      { role: "system", content: known },
    ]);
    expect(messages.filter(({ type }) => type === "MemoryQueryEvent")).toMatchObject([
      { source: "a", content: [{ content: "The user likes short answers." }, { content: "Paris is in France." }] },
    ]);
    await memory.clear();
    await agent.run({ task: "And Rome?" });
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain("short answers");
    expect(asked).toEqual(["Is Paris in France?", "And Rome?"]);
  });

  it("says nothing of memories that know nothing", async () => {
    const model = new ScriptedModel(["ok"]);
    const agent = new AssistantAgent({ name: "a", modelClient: model, systemMessage: "", memory: [new ListMemory()] });
    const { messages } = await agent.run({ task: "hi" });
    expect(model.requests[0]?.messages).toHaveLength(1);
    expect(messages.map(({ type }) => type)).toEqual(["TextMessage", "TextMessage"]);
  });

  it("fails a turn without a trace if a memory fails, or answers something else", async () => {
    for (const query of [() => Promise.reject(new Error("database is down")), async () => "text" as never]) {
      const memory: Memory = { name: "broken", query, add: async () => {}, clear: async () => {} };
      const agent = new AssistantAgent({ name: "a", modelClient: new ScriptedModel([]), memory: [memory] });
      const before = await agent.saveState();
      await expect(agent.run({ task: "hi" })).rejects.toThrow(/database is down|"broken" returned no list/);
      expect(await agent.saveState()).toEqual(before);
    }
  });

  it("does not wait for a memory after an abort", async () => {
    const ending = new AbortController();
    const query = (): Promise<never> => {
      ending.abort(new Error("enough"));
      return new Promise(() => {});
    };
    const memory: Memory = { name: "slow", query, add: async () => {}, clear: async () => {} };
    const agent = new AssistantAgent({ name: "a", modelClient: new ScriptedModel([]), memory: [memory] });
    await expect(agent.run({ task: "hi", signal: ending.signal })).rejects.toThrow("enough");
  });
});
