import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  AgentTool,
  AssistantAgent,
  MaxMessageTermination,
  RoundRobinGroupChat,
  TeamTool,
  tool,
  UserProxyAgent,
} from "../../src/index.ts";
import { texts } from "../support/counter.ts";
import { Echo, sources } from "../support/echo.ts";
import { call, never, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";
import { untyped } from "../support/untyped.ts";

function pair(): RoundRobinGroupChat {
  const participants = [new Echo("one"), new Echo("two")];
  return new RoundRobinGroupChat({ participants, terminationCondition: new MaxMessageTermination(3), name: "pair" });
}

describe("AgentTool", () => {
  it("has the agent's name and description, and returns its messages", async () => {
    const asTool = new AgentTool(new Echo("echo"));
    expect([asTool.name, asTool.description]).toEqual(["echo", "echo echo"]);
    expect(await asTool.execute({ task: "Test task" })).toBe("echo: Test task");
    const last = new AgentTool(new Echo("echo"), { returnValueAsLastMessage: true });
    expect(await last.execute({ task: "Test task" })).toBe("Test task");
  });

  it("saves, loads and resets the agent's state", async () => {
    const asTool = new AgentTool(new Echo("echo"));
    await asTool.execute({ task: "Test task" });
    const state = throughJson(await asTool.saveState());
    expect(state).toEqual({ last: "Test task", turns: 1 });
    const second = new AgentTool(new Echo("echo"));
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    await second.reset();
    expect(await second.saveState()).toEqual({ last: "", turns: 1 });
  });

  it("emits the inner agent's messages and events in the outer agent's stream", async () => {
    const query = tool({ name: "query", description: "", parameters: z.object({}), execute: () => "found" });
    const inner = new AssistantAgent({
      name: "helper",
      modelClient: new ScriptedModel([[call("query")], "Summary from helper"]),
      tools: [query],
      reflectOnToolUse: true,
      modelClientStream: true,
    });
    const outerModel = new ScriptedModel([[call("helper", { task: "Task from main" })], "Summary from main"]);
    const main = new AssistantAgent({
      name: "main",
      modelClient: outerModel,
      tools: [new AgentTool(inner)],
      reflectOnToolUse: true,
    });
    const streamed: string[] = [];
    for await (const item of main.runStream({ task: "Task from user" })) {
      if ("type" in item && item.type === "ModelClientStreamingChunkEvent") streamed.push(item.content);
    }
    expect(streamed.join("")).toBe("Summary from helper");
    await main.reset();
    const again = new ScriptedModel([[call("helper", { task: "Task from main" })], "Summary from main"]);
    const helper = new AssistantAgent({
      name: "helper",
      modelClient: new ScriptedModel([[call("query")], "Summary from helper"]),
      tools: [query],
      reflectOnToolUse: true,
    });
    const second = new AssistantAgent({
      name: "main",
      modelClient: again,
      tools: [new AgentTool(helper)],
      reflectOnToolUse: true,
    });
    const { messages } = await second.run({ task: "Task from user" });
    expect(messages.map(({ type, source }) => [type, source])).toEqual([
      ["TextMessage", "user"],
      ["ToolCallRequestEvent", "main"],
      ["TextMessage", "user"],
      ["ToolCallRequestEvent", "helper"],
      ["ToolCallExecutionEvent", "helper"],
      ["TextMessage", "helper"],
      ["ToolCallExecutionEvent", "main"],
      ["TextMessage", "main"],
    ]);
    expect(texts(messages)[6]).toBe("helper: Summary from helper");
  });

  it("runs the calls of one turn one after another", async () => {
    const calls = [call("echo", { task: "first" }, "1"), call("echo", { task: "second" }, "2")];
    const modelClient = new ScriptedModel([calls]);
    const main = new AssistantAgent({ name: "main", modelClient, tools: [new AgentTool(new Echo("echo"))] });
    const { messages } = await main.run({ task: "go" });
    expect(texts(messages).at(-1)).toBe("echo: first\necho: second");
  });

  it("is part of the state of the agent that uses it", async () => {
    const make = (answers: readonly Parameters<typeof call>[1][]): AssistantAgent => {
      const modelClient = new ScriptedModel(answers.map((args) => [call("echo", args)]));
      return new AssistantAgent({ name: "main", modelClient, tools: [new AgentTool(new Echo("echo"))] });
    };
    const first = make([{ task: "hello" }]);
    await first.run({ task: "go" });
    const state = throughJson(await first.saveState());
    const second = make([]);
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    await second.reset();
    expect(await second.saveState()).toMatchObject({ tools: { echo: { last: "" } } });
  });

  it("is aborted with the turn that called it", async () => {
    const controller = new AbortController();
    const started = never(() => controller.abort(new Error("enough")));
    const inner = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel([started, "again"]) });
    const modelClient = new ScriptedModel([[call("helper", { task: "go" })]]);
    const main = new AssistantAgent({ name: "main", modelClient, tools: [new AgentTool(inner)] });
    await expect(main.run({ task: "go", signal: controller.signal })).rejects.toThrow("enough");
    // The inner agent can run again: nothing of its turn is left.
    expect(texts((await inner.run({ task: "next" })).messages)).toEqual(["next", "again"]);
  });

  it("stops when the consumer leaves the stream", async () => {
    const inner = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel(["same", "same"]) });
    const modelClient = new ScriptedModel([[call("helper", { task: "inner task" })]]);
    const main = new AssistantAgent({ name: "main", modelClient, tools: [new AgentTool(inner)] });
    for await (const item of main.runStream({ task: "go" })) {
      if ("type" in item && item.type === "TextMessage" && item.content === "inner task") break;
    }
    expect(await main.saveState()).toMatchObject({ modelContext: { messages: [] } });
    expect(texts((await inner.run({ task: "next" })).messages)).toEqual(["next", "same"]);
  });

  it("fails if the agent waits for a person", async () => {
    const asTool = new AgentTool(new UserProxyAgent({ name: "person", inputFunc: () => undefined }));
    await expect(asTool.execute({ task: "go" })).rejects.toThrow('"person" has not answered yet.');
  });

  it("rejects a value that is not an agent, and unknown options", () => {
    expect(() => new AgentTool(untyped(pair()))).toThrow("must be an agent");
    expect(() => new AgentTool(new Echo("a"), untyped({ name: "b" }))).toThrow("name");
  });
});

describe("TeamTool", () => {
  it("returns the team's messages, and saves and loads its state", async () => {
    const asTool = new TeamTool(pair(), { name: "team_tool", description: "A team." });
    expect([asTool.name, asTool.description]).toEqual(["team_tool", "A team."]);
    expect(await asTool.execute({ task: "Test task" })).toBe("one: Test task\n\ntwo: Test task");
    const state = throughJson(await asTool.saveState());
    const second = new TeamTool(pair());
    expect(second.name).toBe("pair");
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
  });

  it("emits the team's messages in the agent's stream", async () => {
    const modelClient = new ScriptedModel([[call("pair", { task: "from main" })], "Summary"]);
    const tools = [new TeamTool(pair(), { returnValueAsLastMessage: true })];
    const main = new AssistantAgent({ name: "main", modelClient, tools, reflectOnToolUse: true });
    const { messages } = await main.run({ task: "from user" });
    expect(sources(messages)).toEqual(["user", "main", "user", "one", "two", "main", "main"]);
    expect(texts(messages)[5]).toBe("from main");
  });

  it("rejects a value that is not a team", () => {
    expect(() => new TeamTool(untyped({}))).toThrow("must be a team");
  });
});
