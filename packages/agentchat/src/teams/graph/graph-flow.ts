import {
  type Component,
  type ComponentModel,
  ComponentError,
  defineComponent,
  InvalidInputError,
  type JsonObject,
} from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../../messages/agent-event.ts";
import { isChatMessage } from "../../messages/message-guards.ts";
import { BaseGroupChat, type Speakers } from "../base-group-chat.ts";
import { dumpGroupChat, groupChatConfig, loadGroupChat } from "../group-chat-config.ts";
import { type GroupChatOptions, groupChatOptions } from "../group-chat-options.ts";
import { checkGraph, hasCycle } from "./check-graph.ts";
import { type DiGraph, diGraphSchema, edgesOf } from "./di-graph.ts";
import { GraphProgress } from "./graph-progress.ts";

/** Options of `GraphFlow`. */
export interface GraphFlowOptions extends GroupChatOptions {
  /** The order in which participants speak; its nodes are the participants. */
  readonly graph: DiGraph;
}

const graphFlowOptions: z.ZodType<GraphFlowOptions> = optionsSchema({
  ...groupChatOptions,
  graph: diGraphSchema,
} satisfies OptionSchemas<GraphFlowOptions>);

/**
 * Agents that speak in the order of a graph: one after another, in parallel where the graph forks, after all or any of
 * their predecessors where edges join, and again where an edge leads back. Every agent hears what the others say.
 *
 * The chat is over when no edge leads on; the next run starts the graph again. After a run that a condition or
 * `maxTurns` ended early, the next run continues where it stopped.
 *
 * @example
 * const builder = new DiGraphBuilder().addNode(writer).addNode(grammar).addNode(style).addNode(editor);
 * builder.addEdge(writer, grammar).addEdge(writer, style).addEdge(grammar, editor).addEdge(style, editor);
 * const team = new GraphFlow({ participants: builder.getParticipants(), graph: builder.build() });
 */
export class GraphFlow extends BaseGroupChat {
  /** Creates the team that `dumpComponent` described. It owns its participants and disposes of them when it is disposed of. */
  static readonly component: Component<GraphFlow> = defineComponent({
    provider: "@fenced/agentchat:GraphFlow",
    componentType: "team",
    schema: z.strictObject({ ...groupChatConfig, graph: diGraphSchema }),
    load: async (config, context) => {
      const team = new GraphFlow(await loadGroupChat(config, context));
      team.ownParticipants();
      return team;
    },
  });

  readonly #options: GraphFlowOptions;
  readonly #progress: GraphProgress;

  /**
   * @throws InvalidInputError if an option is unknown or wrong, nodes and participants differ, there is no start or no
   * end, a node has edges with and without conditions, edges of one group activate their target in different ways, a
   * cycle has no exit, or there are cycles but neither a condition nor `maxTurns`.
   */
  constructor(options: GraphFlowOptions) {
    const checked = checkOptions(graphFlowOptions, options, "GraphFlow");
    super({ description: "A team of agents that speak in the order of a graph.", ...checked });
    checkGraph(checked.graph);
    checkMembers(this.participantNames, checked.graph);
    if (hasCycle(checked.graph) && checked.terminationCondition === undefined && checked.maxTurns === undefined) {
      throw new InvalidInputError("The graph has a cycle, but nothing ends the chat", {
        remedy: "Set a terminationCondition or maxTurns.",
      });
    }
    this.#options = checked;
    this.#progress = new GraphProgress(checked.graph);
  }

  /** @throws ComponentError if a condition in the graph is a function, or a part of the team cannot be dumped. */
  override dumpComponent(): ComponentModel {
    const { name, description } = this;
    const { graph } = this.#options;
    const edge = edgesOf(graph).find(({ condition }) => typeof condition === "function");
    if (edge !== undefined) {
      throw new ComponentError(`The edge from "${edge.source}" to "${edge.target}" cannot be dumped`, {
        remedy: "Its condition is a function. Use a string, or create the team in code.",
      });
    }
    return GraphFlow.component.dump({ ...dumpGroupChat({ ...this.#options, name, description }), graph });
  }

  protected override get endReason(): string {
    return this.#progress.whyOver();
  }

  protected override selectSpeakers(): Speakers {
    return this.#progress.next();
  }

  protected override heard(messages: readonly AgentMessage[], speaker?: string): void {
    if (speaker !== undefined) this.#progress.ended(speaker, messages.findLast(isChatMessage));
    else if (this.#progress.isOver) this.#progress.restart();
  }

  protected override resetManager(): void {
    this.#progress.restart();
  }

  protected override saveManager(): JsonObject {
    return this.#progress.save();
  }

  protected override loadManager(state: JsonObject): void {
    this.#progress.load(state, `team "${this.name}"`);
  }
}

function checkMembers(participants: readonly string[], { nodes }: DiGraph): void {
  const names = Object.keys(nodes);
  const missing = names.find((name) => !participants.includes(name));
  const extra = participants.find((name) => !names.includes(name));
  if (missing === undefined && extra === undefined) return;
  const problem =
    missing === undefined ? `The participant "${extra}" has no node` : `No participant is named "${missing}"`;
  throw new InvalidInputError(`${problem} in the graph`, {
    remedy: "Pass the builder's getParticipants() along with its build().",
  });
}
