import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  AssistantAgent,
  type DiGraph,
  type DiGraphEdge,
  GraphFlow,
  messageToText,
  SourceMatchTermination,
} from "../../../src/index.ts";
import { Echo, sources } from "../../support/echo.ts";
import { flow, graphOf, said } from "../../support/graphs.ts";
import { ScriptedModel } from "../../support/scripted-model.ts";
import { throughJson } from "../../support/through-json.ts";

function decider(name: string, answers: readonly string[] | ScriptedModel): AssistantAgent {
  const modelClient = answers instanceof ScriptedModel ? answers : new ScriptedModel(answers);
  return new AssistantAgent({ name, modelClient });
}

describe("GraphFlow", () => {
  it.each<[string, DiGraph, string]>([
    ["one after another", graphOf({ A: ["B"], B: ["C"], C: [] }), "A B C"],
    ["side by side where a way forks", graphOf({ A: ["B", "C"], B: [], C: [] }), "A B C"],
    ["once all have spoken where ways join", graphOf({ A: ["C"], B: ["C"], C: [] }), "A B C"],
    ["once any has spoken where the node says so", graphOf({ A: ["C"], B: ["C"], C: [] }, {}, ["C"]), "A B C"],
    ["from several beginnings", graphOf({ A: [], B: [] }), "A B"],
    ["in parts that have nothing to do with each other", graphOf({ A: ["B"], B: [], C: ["D"], D: [] }), "A C B D"],
    [
      "once where any of several ways arrive together",
      graphOf({ A: ["B", "C"], B: ["D"], C: ["D"], D: ["E"], E: [] }, {}, ["D", "E"]),
      "A B C D E",
    ],
    ["from the entry point", graphOf({ A: ["B"], B: [], C: ["B"] }, { defaultStartNode: "C" }, ["B"]), "C B"],
  ])("lets agents speak %s", async (_, graph, order) => {
    const team = flow(graph);
    const { stopReason } = await team.run({ task: "go" });
    expect(stopReason).toBe("The graph has reached its end.");
    expect(await said(team, "again")).toBe(order);
  });

  it.each<[string, DiGraphEdge["condition"][]]>([
    ["texts", ["apple", "banana", "cherry"]],
    ["functions", ["apple", "banana", "cherry"].map((word) => (message) => messageToText(message).includes(word))],
  ])("takes the edges whose %s are met", async (_, [apple, banana, cherry]) => {
    const edges = [
      { target: "B", condition: apple },
      { target: "C", condition: banana },
      { target: "D", condition: cherry },
    ];
    const team = flow(graphOf({ A: edges, B: [], C: [], D: [] }));
    expect(await said(team, "a banana")).toBe("A C");
    await team.reset();
    expect(await said(team, "a cherry and an apple")).toBe("A B D");
    await team.reset();
    expect(await said(team, "nothing of it")).toBe("A");
  });

  it("goes back until a condition lets it out", async () => {
    const edges = [
      { target: "C", condition: "exit" },
      { target: "A", condition: "loop" },
    ];
    const graph = graphOf({ A: ["B"], B: edges, C: [] }, { defaultStartNode: "A" });
    expect(await said(flow(graph, {}, [decider("B", ["loop", "loop", "exit"])]), "go")).toBe("A B A B A B C");
  });

  it("lets an agent follow itself", async () => {
    const edges = [
      { target: "C", condition: "exit" },
      { target: "B", condition: "loop", activationGroup: "again" },
    ];
    const graph = graphOf({ A: ["B"], B: edges, C: [] }, { defaultStartNode: "A" });
    expect(await said(flow(graph, {}, [decider("B", ["loop", "loop", "exit"])]), "go")).toBe("A B B B C");
  });

  it("keeps two loops through one agent apart by their activation groups", async () => {
    const model = new ScriptedModel(["to_x", "to_o", "to_y", "to_o", "exit"]);
    const back = (group: string): DiGraphEdge => ({ target: "O", condition: "to_o", activationGroup: group });
    const ways = ["X", "Y", "E"].map((target) => ({
      target,
      condition: target === "E" ? "exit" : `to_${target.toLowerCase()}`,
    }));
    const edges = { A: ["B", "C"], B: ["O"], C: ["O"], O: ways, X: [back("x_o")], Y: [back("y_o")], E: [] };
    const agents = ["O", "X", "Y"].map((name) => decider(name, model));
    const team = flow(graphOf(edges, { defaultStartNode: "A" }), {}, agents);
    expect(await said(team, "go")).toBe("A B C O X O Y O E");
  });

  it("passes each message to all participants", async () => {
    const model = new ScriptedModel(["fine"]);
    const team = flow(graphOf({ A: ["B"], B: ["C"], C: [] }), {}, [decider("C", model)]);
    await team.run({ task: "go" });
    const heard = model.requests[0]?.messages.flatMap((message) => (message.role === "user" ? [message.source] : []));
    expect(heard).toEqual(["user", "A", "B"]);
  });

  it("goes on where a condition stopped it, also from a saved state", async () => {
    const graph = graphOf({ A: ["B", "C"], B: ["D"], C: ["D"], D: [] });
    const first = flow(graph, { terminationCondition: new SourceMatchTermination("A") });
    const { messages, stopReason } = await first.run({ task: "go" });
    expect([sources(messages), stopReason]).toEqual([["user", "A"], '"A" has spoken.']);
    const state = throughJson(await first.saveState());
    const second = flow(graph, { maxTurns: 1 });
    await second.loadState(state);
    expect(await said(second)).toBe("B C");
    expect(await said(second)).toBe("D");
    expect(await said(second, "again")).toBe("A");
  });

  it("begins anew with the next task once it has come to its end", async () => {
    const agents = ["A", "B", "C"].map((name) => new Echo(name));
    const team = flow(graphOf({ A: ["B"], B: ["C"], C: [] }), {}, agents);
    expect([await said(team, "one"), await said(team, "two")]).toEqual(["A B C", "A B C"]);
    expect(agents.map(({ turns }) => turns)).toEqual([2, 2, 2]);
  });

  it("refuses the state of another graph", async () => {
    const state = await flow(graphOf({ A: [], B: [] })).saveState();
    const other = flow(graphOf({ A: ["B"], B: [] }));
    await expect(other.loadState({ ...state, manager: { ready: ["X"], running: [], taken: [] } })).rejects.toThrow(
      "another graph",
    );
  });
});

describe("GraphFlow's graph", () => {
  const conditional = (target: string): DiGraphEdge => ({ target, condition: "x" });
  const all: DiGraphEdge = { target: "D", activationCondition: "all" };
  const any: DiGraphEdge = { target: "D", activationCondition: "any" };

  it.each<[string, DiGraph, string]>([
    ["nodes", graphOf({}), "The graph has no nodes"],
    ["a start", graphOf({ A: ["B"], B: ["A"] }), "no start node"],
    ["an end", graphOf({ A: ["B"], B: ["C"], C: ["B"] }), "no leaf node"],
    ["known targets", graphOf({ A: ["X"] }), 'no node "X"'],
    ["a known start", graphOf({ A: [] }, { defaultStartNode: "X" }), 'no node "X"'],
    [
      "conditions on all edges of a node or on none",
      graphOf({ A: [conditional("B"), "C"], B: [], C: [] }),
      "both conditional and unconditional",
    ],
    ["one activation a group", graphOf({ A: ["B", "C"], B: [all], C: [any], D: [] }), '"all" from "B", "any" from "C"'],
    ["a way out of each cycle", graphOf({ A: ["B"], B: ["C"], C: ["A"], D: ["E"], E: [] }), "A -> B -> C -> A"],
    ["nodes that carry their names", { nodes: { A: { name: "B", edges: [] } } }, 'The node "A" is named "B"'],
  ])("needs %s", (_, graph, message) => {
    const participants = ["A", "B", "C", "D", "E"].map((name) => new Echo(name));
    expect(() => new GraphFlow({ participants, graph, maxTurns: 1 })).toThrow(message);
  });

  it("needs an end of its own where it has cycles", () => {
    const graph = graphOf(
      { A: ["B"], B: [conditional("A"), { target: "C", condition: "y" }], C: [] },
      { defaultStartNode: "A" },
    );
    expect(() => flow(graph, { terminationCondition: undefined })).toThrow("nothing ends the chat");
    expect(() => flow(graph, { terminationCondition: undefined, maxTurns: 3 })).not.toThrow();
  });

  it("has a node for each participant, and a participant for each node", () => {
    const graph = graphOf({ A: ["B"], B: [] });
    const make = (...names: string[]) => new GraphFlow({ participants: names.map((name) => new Echo(name)), graph });
    expect(() => make("A")).toThrow('No participant is named "B"');
    expect(() => make("A", "B", "C")).toThrow('The participant "C" has no node');
    expect(() => make("A", "B")).not.toThrow(InvalidInputError);
  });
});
