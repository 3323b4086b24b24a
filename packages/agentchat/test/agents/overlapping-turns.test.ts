import { EventEmitter, once } from "node:events";
import { InvalidInputError, type JsonObject } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AssistantAgent, type BaseChatAgent, CodeExecutorAgent, tool, UserProxyAgent } from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { call, never, ScriptedModel } from "../support/scripted-model.ts";

describe("an agent that is taking a turn", () => {
  const agents: [string, (started: () => void) => BaseChatAgent][] = [
    [
      "AssistantAgent",
      (started) => new AssistantAgent({ name: "a", modelClient: new ScriptedModel([never(started)]) }),
    ],
    [
      "CodeExecutorAgent",
      (started) =>
        new CodeExecutorAgent({
          name: "a",
          modelClient: new ScriptedModel([never(started)]),
          codeExecutor: new ScriptedExecutor(),
        }),
    ],
    [
      "UserProxyAgent",
      (started) =>
        new UserProxyAgent({
          name: "a",
          inputFunc: (_, { signal }) =>
            new Promise((_resolve, reject) => {
              signal?.addEventListener("abort", () => reject(new Error("aborted")));
              started();
            }),
        }),
    ],
  ];

  it.each(agents)("rejects a second turn: %s", async (_, make) => {
    const abort = new AbortController();
    const events = new EventEmitter();
    const agent = make(() => events.emit("started"));
    const started = once(events, "started");
    const first = agent.run({ task: "first", signal: abort.signal });
    await started;
    await expect(agent.run({ task: "second" })).rejects.toSatisfy(InvalidInputError.isInstance);
    await expect(collect(agent.onMessagesStream([]))).rejects.toThrow(/taking a turn and cannot take another/);
    abort.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
  });

  it("cannot be saved, loaded or reset until its tool calls have results", async () => {
    const events = new EventEmitter();
    const wait = tool({
      name: "wait",
      description: "waits",
      parameters: z.object({}),
      execute: async () => {
        const released = once(events, "released");
        events.emit("started");
        await released;
        return "done";
      },
    });
    const modelClient = new ScriptedModel([[call("wait")], "second", "third"]);
    const agent = new AssistantAgent({ name: "a", modelClient, tools: [wait] });
    const started = once(events, "started");
    const first = agent.run({ task: "first" });
    await started;
    await expect(agent.saveState()).rejects.toThrow(/cannot save its state now/);
    await expect(agent.loadState({})).rejects.toThrow(/cannot load a state now/);
    await expect(agent.reset()).rejects.toThrow(/cannot be reset now/);
    events.emit("released");
    await first;
    const roles = JSON.stringify(await agent.saveState()).match(/"role":"\w+"/g);
    expect(roles).toEqual(['"role":"user"', '"role":"assistant"', '"role":"tool"']);
  });

  it("can be saved once its answer is read, and takes a turn after a failed one", async () => {
    const agent = new AssistantAgent({
      name: "a",
      modelClient: new ScriptedModel([() => Promise.reject(new Error("broken")), "hi"]),
    });
    await expect(agent.run({ task: "x" })).rejects.toThrow("broken");
    const states: JsonObject[] = [];
    for await (const item of agent.onMessagesStream([])) {
      if ("chatMessage" in item) states.push(await agent.saveState());
    }
    expect(states).toHaveLength(1);
  });
});
