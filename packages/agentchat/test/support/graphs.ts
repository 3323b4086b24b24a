import {
  type DiGraph,
  type DiGraphEdge,
  GraphFlow,
  type GraphFlowOptions,
  MaxMessageTermination,
  type Participant,
} from "../../src/index.ts";
import { Echo, sources } from "./echo.ts";

type Edges = Readonly<Record<string, readonly (string | DiGraphEdge)[]>>;

/** Builds a graph from the targets of each node. */
export function graphOf(
  edges: Edges,
  more: Omit<Partial<DiGraph>, "nodes"> = {},
  any: readonly string[] = [],
): DiGraph {
  const nodes = Object.entries(edges).map(([name, targets]) => {
    const complete = targets.map((target) => (typeof target === "string" ? { target } : target));
    return [name, { name, edges: complete, ...(any.includes(name) && { activation: "any" as const }) }];
  });
  return { nodes: Object.fromEntries(nodes), ...more };
}

/** A team for a graph; nodes without an agent in `agents` get an echo. */
export function flow(
  graph: DiGraph,
  options: Partial<GraphFlowOptions> = {},
  agents: readonly Participant[] = [],
): GraphFlow {
  const participants = Object.keys(graph.nodes).map(
    (name) => agents.find((agent) => agent.name === name) ?? new Echo(name),
  );
  return new GraphFlow({ participants, graph, terminationCondition: new MaxMessageTermination(20), ...options });
}

/** Runs a team and lists its speakers in order. */
export async function said(team: GraphFlow, task?: string): Promise<string> {
  const { messages } = await team.run(task === undefined ? {} : { task });
  return sources(messages.filter(({ source }) => source !== "user")).join(" ");
}
