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
    ["in parallel after a fork", graphOf({ A: ["B", "C"], B: [], C: [] }), "A B C"],
    ["after all their predecessors by default", graphOf({ A: ["C"], B: ["C"], C: [] }), "A B C"],
    [
      "after any of their predecessors with activation any",
      graphOf({ A: ["C"], B: ["D"], C: [], D: ["C"] }, {}, ["C"]),
      "A B C D C",
    ],
    ["from several start nodes", graphOf({ A: [], B: [] }), "A B"],
    ["in disconnected parts of the graph", graphOf({ A: ["B"], B: [], C: ["D"], D: [] }), "A C B D"],
    [
      "only once if several predecessors finish together",
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
  ])("follows the edges whose conditions are met: %s", async (_, [apple, banana, cherry]) => {
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

  it("loops until an exit condition is met", async () => {
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

  it("separates two loops through one agent by their activation groups", async () => {
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

  it("resumes from a saved state where a condition stopped it", async () => {
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

  it("starts over with the next task after it has reached its end", async () => {
    const agents = ["A", "B", "C"].map((name) => new Echo(name));
    const team = flow(graphOf({ A: ["B"], B: ["C"], C: [] }), {}, agents);
    expect([await said(team, "one"), await said(team, "two")]).toEqual(["A B C", "A B C"]);
    expect(agents.map(({ turns }) => turns)).toEqual([2, 2, 2]);
  });

  it.each<[string, DiGraph, readonly string[], string]>([
    [
      "for a loop to itself",
      graphOf({
        A: ["B"],
        B: [
          { target: "B", condition: "again" },
          { target: "C", condition: "done" },
        ],
        C: [],
      }),
      [],
      '"B" still waits for "B".',
    ],
    [
      "for a way back that was not taken",
      graphOf({
        A: ["B"],
        B: ["C"],
        C: [
          { target: "B", condition: "no" },
          { target: "D", condition: "yes" },
        ],
        D: [],
      }),
      [],
      '"B" still waits for "C".',
    ],
    [
      "for both branches of an either-or",
      graphOf({
        A: [
          { target: "B", condition: "go" },
          { target: "C", condition: "no" },
        ],
        B: ["D"],
        C: ["D"],
        D: [],
      }),
      ["A", "B"],
      '"D" still waits for "C".',
    ],
    [
      "because no condition was met",
      graphOf({
        A: [
          { target: "B", condition: "left" },
          { target: "C", condition: "right" },
        ],
        B: [],
        C: [],
      }),
      ["A"],
      'No condition on an edge of "A" was met.',
    ],
  ])("says that it cannot go on %s", async (_, graph, speakers, reason) => {
    const team = flow(graph);
    const { messages, stopReason } = await team.run({ task: "go" });
    expect(stopReason).toContain("The graph cannot go on: ");
    expect(stopReason).toContain(reason);
    expect(sources(messages).slice(1, 1 + speakers.length)).toEqual(speakers);
    // The next task starts from the beginning.
    expect((await team.run({ task: "go" })).stopReason).toBe(stopReason);
  });

  it("rejects the state of another graph", async () => {
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
    ["a start node", graphOf({ A: ["B"], B: ["A"] }), "no start node"],
    ["a leaf node", graphOf({ A: ["B"], B: ["C"], C: ["B"] }), "no leaf node"],
    ["known targets", graphOf({ A: ["X"] }), 'no node "X"'],
    ["a known start node", graphOf({ A: [] }, { defaultStartNode: "X" }), 'no node "X"'],
    [
      "conditions on all edges of a node or on none",
      graphOf({ A: [conditional("B"), "C"], B: [], C: [] }),
      "both conditional and unconditional",
    ],
    [
      "one activation condition per group",
      graphOf({ A: ["B", "C"], B: [all], C: [any], D: [] }),
      '"all" from "B", "any" from "C"',
    ],
    ["an exit from each cycle", graphOf({ A: ["B"], B: ["C"], C: ["A"], D: ["E"], E: [] }), "A -> B -> C -> A"],
    ["nodes named like their keys", { nodes: { A: { name: "B", edges: [] } } }, 'The node "A" is named "B"'],
  ])("needs %s", (_, graph, message) => {
    const participants = ["A", "B", "C", "D", "E"].map((name) => new Echo(name));
    expect(() => new GraphFlow({ participants, graph, maxTurns: 1 })).toThrow(message);
  });

  it("needs a termination condition or maxTurns if it has cycles", () => {
    const graph = graphOf(
      { A: ["B"], B: [conditional("A"), { target: "C", condition: "y" }], C: [] },
      { defaultStartNode: "A" },
    );
    expect(() => flow(graph, { terminationCondition: undefined })).toThrow("nothing ends the chat");
    expect(() => flow(graph, { terminationCondition: undefined, maxTurns: 3 })).not.toThrow();
  });

  it("needs a node for each participant, and a participant for each node", () => {
    const graph = graphOf({ A: ["B"], B: [] });
    const make = (...names: string[]) => new GraphFlow({ participants: names.map((name) => new Echo(name)), graph });
    expect(() => make("A")).toThrow('No participant is named "B"');
    expect(() => make("A", "B", "C")).toThrow('The participant "C" has no node');
    expect(() => make("A", "B")).not.toThrow();
  });
});
