import { callbackOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ChatMessage } from "../../messages/chat-message.ts";

/** `"all"`: once all edges of the group have been taken. `"any"`: as soon as one has. */
export type Activation = "all" | "any";

/** When an edge is taken: when the node's message contains the text, or the function returns true. */
export type EdgeCondition = string | ((message: ChatMessage) => boolean);

/** An edge from one participant to another. */
export interface DiGraphEdge {
  /** The name of the participant that it leads to. */
  readonly target: string;
  /** When it is taken. Default: always. */
  readonly condition?: EdgeCondition | undefined;
  /**
   * Edges of one group activate their target together; edges of different groups activate it independently, like the
   * way into a loop and the way back. Default: the target's name.
   */
  readonly activationGroup?: string | undefined;
  /** How the group activates its target; the same for all edges of the group. Default: the target's `activation`. */
  readonly activationCondition?: Activation | undefined;
}

/** A participant and its outgoing edges. */
export interface DiGraphNode {
  /** The participant's name. */
  readonly name: string;
  /** Its outgoing edges; empty if the graph ends here. */
  readonly edges: readonly DiGraphEdge[];
  /** How incoming edges without `activationCondition` activate it. Default: `"all"`. */
  readonly activation?: Activation | undefined;
}

/** The order in which participants speak. Plain data: build it with `DiGraphBuilder`, or write it by hand. */
export interface DiGraph {
  /** The nodes by the names of their participants. */
  readonly nodes: Readonly<Record<string, DiGraphNode>>;
  /** Who begins. Default: all participants without incoming edges. */
  readonly defaultStartNode?: string | undefined;
}

/** An edge with its defaults filled in. */
export interface CompleteEdge {
  readonly source: string;
  readonly target: string;
  readonly condition: EdgeCondition | undefined;
  readonly group: string;
  readonly activation: Activation;
}

const activation = z.enum(["all", "any"]);

const edgeSchema = optionsSchema({
  target: z.string(),
  condition: z.union([z.string().min(1), callbackOption<(message: ChatMessage) => boolean>()]).exactOptional(),
  activationGroup: z.string().min(1).exactOptional(),
  activationCondition: activation.exactOptional(),
} satisfies OptionSchemas<DiGraphEdge>);

const nodeSchema = optionsSchema({
  name: z.string(),
  edges: z.array(edgeSchema),
  activation: activation.exactOptional(),
} satisfies OptionSchemas<DiGraphNode>);

/** Checks the shape of a graph; `checkGraph` checks its meaning. */
export const diGraphSchema: z.ZodType<DiGraph> = optionsSchema({
  nodes: z.record(z.string(), nodeSchema),
  defaultStartNode: z.string().exactOptional(),
} satisfies OptionSchemas<DiGraph>);

/** All edges, in the order of the nodes. */
export function edgesOf({ nodes }: DiGraph): CompleteEdge[] {
  return Object.entries(nodes).flatMap(([source, { edges }]) =>
    edges.map(({ target, condition, activationGroup = target, activationCondition }) => {
      const own = Object.hasOwn(nodes, target) ? nodes[target]?.activation : undefined;
      return { source, target, condition, group: activationGroup, activation: activationCondition ?? own ?? "all" };
    }),
  );
}

/** Who begins. */
export function startNodes(graph: DiGraph): readonly string[] {
  if (graph.defaultStartNode !== undefined) return [graph.defaultStartNode];
  const targets = new Set(edgesOf(graph).map(({ target }) => target));
  return Object.keys(graph.nodes).filter((name) => !targets.has(name));
}
