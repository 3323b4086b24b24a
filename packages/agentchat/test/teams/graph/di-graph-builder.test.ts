import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { DiGraphBuilder, GraphFlow, messageToText } from "../../../src/index.ts";
import { Echo, sources } from "../../support/echo.ts";
import { untyped } from "../../support/untyped.ts";

const [a, b, c] = [new Echo("A"), new Echo("B"), new Echo("C")];

function builder(): DiGraphBuilder {
  return new DiGraphBuilder().addNode(a).addNode(b).addNode(c);
}

async function said(made: DiGraphBuilder, task: string): Promise<string[]> {
  const team = new GraphFlow({ participants: made.getParticipants(), graph: made.build(), maxTurns: 5 });
  return sources((await team.run({ task })).messages);
}

describe("DiGraphBuilder", () => {
  it("builds plain data", () => {
    const made = builder()
      .addEdge(a, "B", { activationGroup: "g", activationCondition: "any" })
      .addConditionalEdges("B", { loop: a, exit: c })
      .setEntryPoint(a);
    expect(made.getParticipants()).toEqual([a, b, c]);
    expect(made.build()).toEqual({
      nodes: {
        A: { name: "A", activation: "all", edges: [{ target: "B", activationGroup: "g", activationCondition: "any" }] },
        B: {
          name: "B",
          activation: "all",
          edges: [
            { target: "A", condition: "loop" },
            { target: "C", condition: "exit" },
          ],
        },
        C: { name: "C", activation: "all", edges: [] },
      },
      defaultStartNode: "A",
    });
  });

  it("builds graphs that run", async () => {
    expect(await said(builder().addEdge(a, b).addEdge(b, c), "go")).toEqual(["user", "A", "B", "C"]);
    expect(await said(builder().addEdge(a, b).addEdge(a, c), "go")).toEqual(["user", "A", "B", "C"]);
    const branches = builder().addConditionalEdges(a, { yes: b, no: c });
    expect(await said(branches, "no")).toEqual(["user", "A", "C"]);
    const functions = builder()
      .addEdge(a, b, { condition: (message) => messageToText(message).includes("even") })
      .addEdge(a, c, { condition: (message) => messageToText(message).includes("odd") });
    expect(await said(functions, "odd")).toEqual(["user", "A", "C"]);
  });

  it("applies a node's activation to edges without one of their own", async () => {
    const made = new DiGraphBuilder().addNode(a).addNode(b).addNode(c, { activation: "any" });
    made.addConditionalEdges(a, { yes: c, no: b }).addEdge(b, c);
    expect(await said(made, "yes")).toEqual(["user", "A", "C"]);
  });

  it("does not change a graph that is already built", () => {
    const made = builder().addEdge(a, b);
    const graph = made.build();
    made.addEdge(b, c);
    expect(graph.nodes["B"]?.edges).toEqual([]);
  });

  it("rejects invalid nodes, edges and entry points", () => {
    expect(() => builder().addNode(new Echo("A"))).toThrow('already has a node "A"');
    expect(() => builder().addEdge(a, "X")).toThrow('no node "X"');
    expect(() => builder().setEntryPoint("X")).toThrow(InvalidInputError);
    expect(() => builder().addNode(a, untyped({ activation: "some" }))).toThrow("activation");
    expect(() =>
      builder()
        .addEdge(a, b, untyped({ when: "x" }))
        .build(),
    ).toThrow("when");
    expect(() => new DiGraphBuilder().build()).toThrow("no nodes");
  });
});
