import type { JsonObject } from "@fenced/core";
import * as z from "zod";
import { parseState } from "../../common/parse-state.ts";
import type { ChatMessage } from "../../messages/chat-message.ts";
import { messageToText } from "../../messages/message-to-text.ts";
import { type CompleteEdge, type DiGraph, edgesOf, startNodes } from "./di-graph.ts";

const stateSchema = z.strictObject({
  ready: z.array(z.string()),
  running: z.array(z.string()),
  taken: z.array(z.strictObject({ target: z.string(), group: z.string(), count: z.int().min(0) })),
});

/** How often edges of a group were taken since the group last activated its target. */
interface TakenGroup {
  readonly target: string;
  readonly group: string;
  count: number;
}

/** How far a chat has come in its graph. */
export class GraphProgress {
  readonly #graph: DiGraph;
  readonly #edges: readonly CompleteEdge[];
  #ready: string[];
  #running: string[] = [];
  #taken: TakenGroup[] = [];
  /** Participants after whose last message no condition was met. */
  readonly #stuck = new Set<string>();
  /** Participants that have spoken since the start. */
  readonly #spoken = new Set<string>();

  constructor(graph: DiGraph) {
    this.#graph = graph;
    this.#edges = edgesOf(graph);
    this.#ready = [...startNodes(graph)];
  }

  /** The participants whose turn it is, including those that have not ended their last turn. */
  next(): readonly string[] {
    this.#running = [...new Set([...this.#running, ...this.#ready])];
    this.#ready = [];
    // Reset the counts that activated them. An "all" group that is not complete yet keeps counting.
    this.#taken = this.#taken.filter(({ target, group, count }) => {
      return !(this.#running.includes(target) && this.#isComplete(target, group, count));
    });
    return this.#running;
  }

  /** True if no edge leads on. */
  get isOver(): boolean {
    return this.#ready.length === 0 && this.#running.length === 0;
  }

  /** Why nobody speaks next: the graph has come to an end, or some participants wait in vain. */
  whyOver(): string {
    const waiting = this.#taken
      .filter(({ target, group, count }) => count > 0 && !this.#isComplete(target, group, count))
      .map(({ target, group }) => `"${target}" still waits for ${this.#missing(target, group)}.`);
    const stuck = [...this.#stuck].map((name) => `No condition on an edge of "${name}" was met.`);
    if (waiting.length + stuck.length === 0) return "The graph has reached its end.";
    const remedy =
      waiting.length === 0
        ? ""
        : ' An edge that may never be taken needs the activation "any", or an activation group of its own.';
    return `The graph cannot go on: ${[...stuck, ...waiting].join(" ")}${remedy}`;
  }

  /** Follows the outgoing edges of a node that has spoken. */
  ended(name: string, message: ChatMessage | undefined): void {
    const followed = this.#edges.filter((edge) => edge.source === name && isTaken(edge, message));
    this.#running = this.#running.filter((each) => each !== name);
    this.#spoken.add(name);
    const isStuck = followed.length === 0 && this.#edges.some(({ source }) => source === name);
    if (isStuck) this.#stuck.add(name);
    else this.#stuck.delete(name);
    for (const { target, group } of followed) {
      const taken = this.#takenOf(target, group);
      const wasComplete = this.#isComplete(target, group, taken.count);
      taken.count += 1;
      if (!wasComplete && this.#isComplete(target, group, taken.count)) this.#ready.push(target);
    }
  }

  /** Starts the graph again. */
  restart(): void {
    this.#ready = [...startNodes(this.#graph)];
    this.#running = [];
    this.#taken = [];
    this.#stuck.clear();
    this.#spoken.clear();
  }

  save(): JsonObject {
    return { ready: [...this.#ready], running: [...this.#running], taken: this.#taken.map((each) => ({ ...each })) };
  }

  /** @throws InvalidInputError if it is not a saved state, or belongs to another graph. */
  load(state: JsonObject, owner: string): void {
    const node = (name: string): boolean => Object.hasOwn(this.#graph.nodes, name);
    const ofGraph = stateSchema.refine(
      ({ ready, running, taken }) => [...ready, ...running, ...taken.map(({ target }) => target)].every(node),
      { error: "it belongs to another graph" },
    );
    const { ready, running, taken } = parseState(ofGraph, state, owner);
    this.#ready = ready;
    this.#running = running;
    this.#taken = taken;
    this.#stuck.clear();
    this.#spoken.clear();
  }

  /** The participants whose edges of a group were not taken: those that have not spoken, or else all. */
  #missing(target: string, group: string): string {
    const sources = this.#edges
      .filter((edge) => edge.target === target && edge.group === group)
      .map(({ source }) => source);
    const silent = sources.filter((source) => !this.#spoken.has(source) || this.#stuck.has(source));
    return (silent.length > 0 ? silent : sources).map((source) => `"${source}"`).join(" and ");
  }

  #takenOf(target: string, group: string): TakenGroup {
    const present = this.#taken.find((each) => each.target === target && each.group === group);
    if (present !== undefined) return present;
    const added = { target, group, count: 0 };
    this.#taken.push(added);
    return added;
  }

  #isComplete(target: string, group: string, count: number): boolean {
    const edges = this.#edges.filter((edge) => edge.target === target && edge.group === group);
    return count >= (edges[0]?.activation === "any" ? 1 : edges.length);
  }
}

function isTaken({ condition }: CompleteEdge, message: ChatMessage | undefined): boolean {
  if (condition === undefined) return true;
  if (message === undefined) return false;
  return typeof condition === "string" ? messageToText(message).includes(condition) : condition(message);
}
