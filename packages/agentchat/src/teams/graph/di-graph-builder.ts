import { InvalidInputError } from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { Participant } from "../team.ts";
import { checkGraph } from "./check-graph.ts";
import { type Activation, type DiGraph, type DiGraphEdge, type DiGraphNode, diGraphSchema } from "./di-graph.ts";

/** How a node is activated. */
export interface AddNodeOptions {
  /** See `DiGraphNode.activation`. Default: `"all"`. */
  readonly activation?: Activation | undefined;
}

/** When and how an edge is taken: see `DiGraphEdge`. */
export type AddEdgeOptions = Omit<DiGraphEdge, "target">;

const nodeOptions: z.ZodType<AddNodeOptions> = optionsSchema({
  activation: z.enum(["all", "any"]).exactOptional(),
} satisfies OptionSchemas<AddNodeOptions>);

/**
 * Builds a graph for a `GraphFlow`, step by step.
 *
 * @example
 * const builder = new DiGraphBuilder()
 *   .addNode(writer)
 *   .addNode(critic)
 *   .addNode(editor)
 *   .addEdge(writer, critic)
 *   .addConditionalEdges(critic, { APPROVED: editor, REVISE: writer })
 *   .setEntryPoint(writer);
 * const team = new GraphFlow({ participants: builder.getParticipants(), graph: builder.build(), maxTurns: 10 });
 */
export class DiGraphBuilder {
  readonly #participants: Map<string, Participant> = new Map();
  readonly #nodes: Map<string, { node: DiGraphNode; readonly edges: DiGraphEdge[] }> = new Map();
  #entryPoint: string | undefined;

  /**
   * Adds a participant.
   *
   * @throws InvalidInputError if another participant has the same name, or an option is unknown or wrong.
   */
  addNode(participant: Participant, options: AddNodeOptions = {}): this {
    const { name } = participant;
    const { activation = "all" } = checkOptions(nodeOptions, options, "addNode");
    const present = this.#participants.get(name);
    if (present !== undefined && present !== participant) {
      throw new InvalidInputError(`The graph already has a node "${name}"`, {
        remedy: "Give each participant a unique name.",
      });
    }
    const edges = this.#nodes.get(name)?.edges ?? [];
    this.#participants.set(name, participant);
    this.#nodes.set(name, { node: { name, edges, activation }, edges });
    return this;
  }

  /**
   * Adds an edge from one participant to another; pass the participants or their names.
   *
   * @throws InvalidInputError if one of them was not added.
   */
  addEdge(source: Participant | string, target: Participant | string, options: AddEdgeOptions = {}): this {
    const edges = this.#nodes.get(this.#nameOf(source))?.edges;
    edges?.push({ ...options, target: this.#nameOf(target) });
    return this;
  }

  /** Adds edges that are taken when the source's message contains their text. */
  addConditionalEdges(
    source: Participant | string,
    targets: Readonly<Record<string, Participant | string>>,
    options: Omit<AddEdgeOptions, "condition"> = {},
  ): this {
    for (const [condition, target] of Object.entries(targets)) this.addEdge(source, target, { ...options, condition });
    return this;
  }

  /** Sets who begins. Default: all participants without incoming edges. */
  setEntryPoint(participant: Participant | string): this {
    this.#entryPoint = this.#nameOf(participant);
    return this;
  }

  /** The participants, in the order in which they were added. */
  getParticipants(): Participant[] {
    return [...this.#participants.values()];
  }

  /** @throws InvalidInputError if the graph cannot be run: see `GraphFlow`. */
  build(): DiGraph {
    const nodes = [...this.#nodes].map(([name, { node, edges }]) => [name, { ...node, edges: [...edges] }] as const);
    const entryPoint = this.#entryPoint === undefined ? {} : { defaultStartNode: this.#entryPoint };
    const graph = checkOptions(diGraphSchema, { nodes: Object.fromEntries(nodes), ...entryPoint }, "DiGraphBuilder");
    checkGraph(graph);
    return graph;
  }

  #nameOf(participant: Participant | string): string {
    const name = typeof participant === "string" ? participant : participant.name;
    if (this.#nodes.has(name)) return name;
    throw new InvalidInputError(`The graph has no node "${name}"`, { remedy: "Add it first, with addNode()." });
  }
}
