import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  AssistantAgent,
  handoffMessage,
  HandoffTermination,
  isTaskResult,
  MaxMessageTermination,
  RoundRobinGroupChat,
  Swarm,
  type SwarmOptions,
  TextMentionTermination,
  tool,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { Counter, texts } from "../support/counter.ts";
import { HandingOff, sources } from "../support/echo.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";
import { untyped } from "../support/untyped.ts";

/** Three agents that hand the chat to each other: second -> third -> first -> second. */
function three(options: Partial<SwarmOptions> = {}, thirdTarget = "first"): Swarm {
  const participants = [
    new HandingOff("second", "third"),
    new HandingOff("first", "second"),
    new HandingOff("third", thirdTarget),
  ];
  return new Swarm({ participants, ...options });
}

describe("Swarm", () => {
  it("starts with the first participant and follows handoffs", async () => {
    const team = three({ terminationCondition: new MaxMessageTermination(6) });
    const items = await collect(team.runStream({ task: "task" }));
    const result = items.find(isTaskResult);
    expect(sources(result?.messages ?? [])).toEqual(["user", "second", "third", "first", "second", "third"]);
    expect(items.slice(0, -1)).toEqual(result?.messages);
    expect(result?.stopReason).toContain("6 messages");
  });

  it("saves and loads whose turn it is", async () => {
    const team = three({ maxTurns: 2 });
    await team.run({ task: "task" });
    const state = throughJson(await team.saveState());
    const second = three({ maxTurns: 1 });
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    expect(sources((await second.run()).messages)).toEqual(["first"]);
    await second.reset();
    expect(sources((await second.run({ task: "again" })).messages)).toEqual(["user", "second"]);
  });

  it("follows handoffs that a model makes as tool calls", async () => {
    const modelClient = new ScriptedModel([[call("handoff_to_agent2")], "Hello", "TERMINATE"]);
    const agent1 = new AssistantAgent({
      name: "agent1",
      modelClient,
      handoffs: [{ target: "agent2", name: "handoff_to_agent2", message: "handoff to agent2" }],
    });
    const team = new Swarm({
      participants: [agent1, new HandingOff("agent2", "agent1")],
      terminationCondition: new TextMentionTermination("TERMINATE"),
    });
    const { messages } = await team.run({ task: "task" });
    expect(messages.map(({ type }) => type)).toEqual([
      "TextMessage",
      "ToolCallRequestEvent",
      "ToolCallExecutionEvent",
      "HandoffMessage",
      "HandoffMessage",
      "TextMessage",
      "TextMessage",
    ]);
    expect(texts(messages).slice(3)).toEqual(["handoff to agent2", "Transferred to agent1.", "Hello", "TERMINATE"]);
  });

  it("gives the target the results of the turn's other tool calls", async () => {
    const calls = [call("tool1", {}, "1"), call("tool2", {}, "2"), call("transfer_to_agent2", {}, "3")];
    const modelClient = new ScriptedModel([calls, "Hello", "TERMINATE"]);
    const tools = ["tool1", "tool2"].map((name) =>
      tool({ name, description: "", parameters: z.object({}), execute: () => name }),
    );
    const agent1 = new AssistantAgent({ name: "agent1", modelClient, handoffs: ["agent2"], tools });
    const agent2 = new AssistantAgent({ name: "agent2", modelClient, systemMessage: "" });
    const terminationCondition = new TextMentionTermination("TERMINATE");
    const team = new Swarm({ participants: [agent1, agent2], terminationCondition });
    const { messages } = await team.run({ task: "task" });
    expect(sources(messages)).toEqual(["user", "agent1", "agent1", "agent1", "agent2", "agent2"]);
    expect(modelClient.requests[1]?.messages.slice(0, 3)).toEqual([
      { role: "user", content: "task", source: "user" },
      { role: "assistant", content: calls.slice(0, 2), source: "agent1" },
      {
        role: "tool",
        content: [expect.objectContaining({ content: "tool1" }), expect.objectContaining({ content: "tool2" })],
      },
    ]);
  });

  it("pauses after a turn and resumes, with or without a new task", async () => {
    const team = three({ maxTurns: 1 });
    expect(texts((await team.run({ task: "task" })).messages)).toEqual(["task", "Transferred to third."]);
    expect(texts((await team.run({ task: "new" })).messages)).toEqual(["new", "Transferred to first."]);
    expect(texts((await team.run()).messages)).toEqual(["Transferred to second."]);
  });

  it("stops at a handoff, and resumes with its target", async () => {
    const team = three({ terminationCondition: new HandoffTermination("third") });
    expect(sources((await team.run({ task: "task" })).messages)).toEqual(["user", "second"]);
    expect(sources((await team.run()).messages)).toEqual(["third", "first", "second"]);
    expect(sources((await team.run({ task: "new" })).messages)).toEqual(["user", "third", "first", "second"]);
  });

  it("resumes after a handoff to an outsider only with a handoff message", async () => {
    const team = three({ terminationCondition: new HandoffTermination("user") }, "user");
    const { messages, stopReason } = await team.run({ task: "task" });
    expect(sources(messages)).toEqual(["user", "second", "third"]);
    expect(stopReason).toBe('"third" handed the chat to "user".');
    const before = await team.saveState();
    await expect(team.run()).rejects.toThrow('handed off to "user", who is not a participant');
    await expect(team.run({ task: "new" })).rejects.toThrow(InvalidInputError);
    expect(await team.saveState()).toEqual(before);
    const task = handoffMessage({ source: "user", target: "first", content: "Go on." });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "first", "second", "third"]);
  });

  it("fails if the target is unknown and no condition ends the run", async () => {
    await expect(three({}, "nobody").run({ task: "task" })).rejects.toThrow('new HandoffTermination("nobody")');
  });

  it("rejects teams as participants", () => {
    const inner = new RoundRobinGroupChat({ participants: [new Counter("a")] });
    expect(() => new Swarm({ participants: [untyped(inner)] })).toThrow("must be an agent");
  });
});
