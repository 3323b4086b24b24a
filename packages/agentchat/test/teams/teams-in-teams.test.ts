import { describe, expect, it } from "vitest";
import {
  AssistantAgent,
  CodeExecutorAgent,
  DiGraphBuilder,
  GraphFlow,
  isTaskResult,
  MaxMessageTermination,
  RoundRobinGroupChat,
  SelectorGroupChat,
  TextMentionTermination,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { Counter, counters, texts } from "../support/counter.ts";
import { Echo, sources } from "../support/echo.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const done = (): TextMentionTermination => new TextMentionTermination("TERMINATE");

/** A coder and a runner, and a reviewer of their work. */
function coders(modelClient: ScriptedModel): { inner: RoundRobinGroupChat; reviewer: AssistantAgent } {
  const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: new ScriptedExecutor() });
  const inner = new RoundRobinGroupChat({
    participants: [new AssistantAgent({ name: "coder", modelClient }), runner],
    terminationCondition: done(),
    name: "coders",
    description: "Write code and run it.",
  });
  return { inner, reviewer: new AssistantAgent({ name: "reviewer", modelClient }) };
}

describe("a nested team", () => {
  it("runs until its own condition stops it, and shares all its messages", async () => {
    const modelClient = new ScriptedModel([python("print(7)"), "It is TERMINATED", "Good job. APPROVED"]);
    const { inner, reviewer } = coders(modelClient);
    const terminationCondition = new TextMentionTermination("APPROVED");
    const team = new RoundRobinGroupChat({ participants: [inner, reviewer], terminationCondition });
    const items = await collect(team.runStream({ task: "go" }));
    const result = items.find(isTaskResult);
    expect(sources(result?.messages ?? [])).toEqual(["user", "coder", "runner", "coder", "reviewer"]);
    expect(items.slice(0, -1)).toEqual(result?.messages);
    const heard = modelClient.requests[2]?.messages.slice(1).map(({ content }) => content);
    expect(heard).toEqual(["go", python("print(7)"), "ok\n", "It is TERMINATED"]);
  });

  it("can be chosen by name in a SelectorGroupChat", async () => {
    const modelClient = new ScriptedModel(["coders", "TERMINATE now", "reviewer is next", "fine"]);
    const { inner, reviewer } = coders(modelClient);
    const participants = [inner, reviewer, new Echo("other")];
    const team = new SelectorGroupChat({ participants, modelClient, maxTurns: 2 });
    expect(sources((await team.run({ task: "go" })).messages)).toEqual(["user", "coder", "reviewer"]);
    expect(modelClient.requests[0]?.messages[0]?.content).toContain("coders: Write code and run it.");
  });

  it("can be a node of a graph", async () => {
    const { team: pair } = counters(2);
    const builder = new DiGraphBuilder().addNode(pair).addNode(new Echo("end"));
    builder.addEdge(pair, "end", { condition: "b 2" });
    const team = new GraphFlow({ participants: builder.getParticipants(), graph: builder.build() });
    expect(texts((await team.run({ task: "go" })).messages)).toEqual(["go", "a 1", "b 2", "go"]);
  });

  it("remembers messages from turn to turn", async () => {
    const { team: pair, a } = counters(1);
    const team = new RoundRobinGroupChat({ participants: [pair, new Counter("c")], maxTurns: 3 });
    expect(texts((await team.run({ task: "go" })).messages)).toEqual(["go", "a 1", "c 2", "b 3"]);
    expect(a.received.map(texts)).toEqual([["go"]]);
  });

  it("rolls back a turn that fails", async () => {
    const { team: pair, b } = counters(2);
    const team = new RoundRobinGroupChat({ participants: [pair, new Counter("c")], maxTurns: 2 });
    b.fail = new Error("broken");
    await expect(team.run({ task: "go" })).rejects.toBe(b.fail);
    b.fail = undefined;
    expect(texts((await team.run()).messages)).toEqual(["a 1", "b 2", "c 3"]);
  });

  it("is saved and loaded with the outer team", async () => {
    const make = (): RoundRobinGroupChat => {
      const inner = new RoundRobinGroupChat({ participants: [new Echo("a"), new Echo("b")], maxTurns: 1, name: "in" });
      return new RoundRobinGroupChat({ participants: [inner, new Echo("c")], maxTurns: 1, name: "out" });
    };
    const first = make();
    await first.run({ task: "go" });
    await first.run();
    const state = throughJson(await first.saveState());
    const second = make();
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    expect(sources((await second.run()).messages)).toEqual(["b"]);
  });

  it("is saved and loaded with the SelectorGroupChat that chose it", async () => {
    const make = (...answers: string[]): SelectorGroupChat => {
      const inner = new RoundRobinGroupChat({ participants: [new Echo("a"), new Echo("b")], maxTurns: 1, name: "in" });
      const participants = [inner, new Echo("c"), new Echo("d")];
      return new SelectorGroupChat({ participants, modelClient: new ScriptedModel(answers), maxTurns: 1 });
    };
    const first = make("in");
    await first.run({ task: "go" });
    const state = throughJson(await first.saveState());
    // The last speaker is not a candidate: a model that names it is asked again.
    const second = make("in", "c", "in");
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    expect(sources((await second.run()).messages)).toEqual(["c"]);
    expect(sources((await second.run()).messages)).toEqual(["b"]);
  });

  it("is reset with the outer team", async () => {
    const { team: pair, a } = counters(1);
    const team = new RoundRobinGroupChat({ participants: [pair], maxTurns: 1 });
    await team.run({ task: "go" });
    await team.reset();
    expect(a.resets).toBe(1);
    expect(texts((await team.run({ task: "again" })).messages)).toEqual(["again", "a 1"]);
  });

  it("is stopped when the outer run is aborted", async () => {
    const executor = new ScriptedExecutor(["hang"]);
    const running = new Promise<void>((resolve) => {
      executor.onRun = resolve;
    });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const inner = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1, name: "in" });
    const team = new RoundRobinGroupChat({ participants: [inner] });
    const controller = new AbortController();
    const run = team.run({ task: python("while True: pass"), signal: controller.signal });
    await running;
    controller.abort(new Error("enough"));
    await expect(run).rejects.toThrow("enough");
    expect(executor.running).toBe(0);
  });

  it("adds no messages if its condition is met at once", async () => {
    const inner = new RoundRobinGroupChat({
      participants: [new Echo("a")],
      terminationCondition: new MaxMessageTermination(1),
      name: "in",
    });
    const team = new RoundRobinGroupChat({ participants: [inner, new Echo("b")], maxTurns: 2 });
    expect(sources((await team.run({ task: "go" })).messages)).toEqual(["user", "b"]);
  });
});
