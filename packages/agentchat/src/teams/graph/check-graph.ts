import { InvalidInputError } from "@fenced/core";
import { type CompleteEdge, type DiGraph, edgesOf, startNodes } from "./di-graph.ts";

/** @throws InvalidInputError if the graph has no start or no end, or could not run as intended. */
export function checkGraph(graph: DiGraph): void {
  const names = Object.keys(graph.nodes);
  const edges = edgesOf(graph);
  if (names.length === 0) throw invalid("The graph has no nodes", "Add one with addNode().");
  checkNames(graph, edges);
  if (startNodes(graph).length === 0) {
    throw invalid(
      "The graph has no start node: every node has an incoming edge",
      "Call setEntryPoint(), or set defaultStartNode.",
    );
  }
  if (names.every((name) => edges.some(({ source }) => source === name))) {
    throw invalid("The graph has no leaf node: every node has an outgoing edge", "Add a node without outgoing edges.");
  }
  for (const name of names) checkConditions(name, edges);
  checkGroups(edges);
  const cycle = findCycle(
    names,
    edges.filter(({ condition }) => condition === undefined),
  );
  if (cycle !== undefined) {
    throw invalid(
      `The graph has a cycle without an exit condition: ${cycle.join(" -> ")}`,
      "Add a condition to one of its edges.",
    );
  }
}

/** Whether the graph has a cycle. */
export function hasCycle(graph: DiGraph): boolean {
  return findCycle(Object.keys(graph.nodes), edgesOf(graph)) !== undefined;
}

function checkNames({ nodes, defaultStartNode }: DiGraph, edges: readonly CompleteEdge[]): void {
  for (const [key, { name }] of Object.entries(nodes)) {
    if (key !== name) throw invalid(`The node "${key}" is named "${name}"`, "Use one name for both.");
  }
  const mentioned = [
    ...edges.map(({ target }) => target),
    ...(defaultStartNode === undefined ? [] : [defaultStartNode]),
  ];
  const unknown = mentioned.find((name) => !Object.hasOwn(nodes, name));
  if (unknown !== undefined) throw invalid(`The graph has no node "${unknown}"`, "Add it with addNode().");
}

function checkConditions(name: string, edges: readonly CompleteEdge[]): void {
  const own = edges.filter(({ source }) => source === name);
  const conditional = own.filter(({ condition }) => condition !== undefined);
  if (conditional.length === 0 || conditional.length === own.length) return;
  throw invalid(
    `Node "${name}" has both conditional and unconditional edges`,
    "Set a condition on all of its edges, or on none.",
  );
}

function checkGroups(edges: readonly CompleteEdge[]): void {
  for (const edge of edges) {
    const other = edges.find(
      ({ target, group, activation }) =>
        target === edge.target && group === edge.group && activation !== edge.activation,
    );
    if (other === undefined) continue;
    throw invalid(
      `Edges of group "${edge.group}" to "${edge.target}" have different activation conditions: "${edge.activation}" from "${edge.source}", "${other.activation}" from "${other.source}"`,
      "Use one condition for all edges of a group.",
    );
  }
}

/** The names along a cycle; the first one is also the last. */
function findCycle(names: readonly string[], edges: readonly CompleteEdge[]): string[] | undefined {
  const done = new Set<string>();
  const follow = (name: string, path: readonly string[]): string[] | undefined => {
    const start = path.indexOf(name);
    if (start !== -1) return [...path.slice(start), name];
    if (done.has(name)) return undefined;
    for (const { source, target } of edges) {
      const cycle = source === name ? follow(target, [...path, name]) : undefined;
      if (cycle !== undefined) return cycle;
    }
    done.add(name);
    return undefined;
  };
  for (const name of names) {
    const cycle = follow(name, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

function invalid(problem: string, remedy: string): InvalidInputError {
  return new InvalidInputError(problem, { remedy });
}
