import { FencedError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  DiGraphBuilder,
  GraphFlow,
  RoundRobinGroupChat,
  SelectorGroupChat,
  Swarm,
  type Team,
  UserProxyAgent,
} from "../../src/index.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";
import { untyped } from "../support/untyped.ts";

const says = (name: string, answer: string | undefined = name): UserProxyAgent =>
  new UserProxyAgent({ name, inputFunc: () => answer });
const waits = (name: string): UserProxyAgent => new UserProxyAgent({ name, inputFunc: () => undefined });

/** Teams that are saved part-way: in a nested team's turn, in a loop, while one agent waits. */
const teams: readonly (readonly [string, () => Team])[] = [
  ["RoundRobinGroupChat", () => new RoundRobinGroupChat({ participants: [says("a"), says("b")], maxTurns: 1 })],
  [
    "a nested team",
    () => {
      const inner = new RoundRobinGroupChat({ name: "inner", participants: [says("a"), waits("b")] });
      return new RoundRobinGroupChat({ participants: [inner, says("c")], maxTurns: 3 });
    },
  ],
  [
    "SelectorGroupChat",
    () => {
      const modelClient = new ScriptedModel(["a", "b", "c"]);
      return new SelectorGroupChat({ participants: [says("a"), says("b"), says("c")], modelClient, maxTurns: 2 });
    },
  ],
  ["Swarm", () => new Swarm({ participants: [says("a"), says("b")], maxTurns: 1 })],
  [
    "GraphFlow in a loop",
    () => {
      const [a, b, c] = [says("a"), says("b", "again"), says("c")];
      const builder = new DiGraphBuilder().addNode(a).addNode(b).addNode(c).addEdge(a, b).setEntryPoint(a);
      const graph = builder.addConditionalEdges(b, { again: a, done: c }).build();
      return new GraphFlow({ participants: builder.getParticipants(), graph, maxTurns: 3 });
    },
  ],
  [
    "GraphFlow with parallel agents, one of which waits",
    () => {
      const [a, b, c, d] = [says("a"), says("b"), waits("c"), says("d")];
      const builder = new DiGraphBuilder().addNode(a).addNode(b).addNode(c).addNode(d);
      const graph = builder.addEdge(a, b).addEdge(a, c).addEdge(b, d).addEdge(c, d).build();
      return new GraphFlow({ participants: builder.getParticipants(), graph });
    },
  ],
];

/** For each part of the state, copies in which it is replaced by junk or missing. */
function* forgeries(state: unknown): Generator {
  for (const junk of [null, -1, "zzz", [], { a: 1 }]) yield junk;
  if (Array.isArray(state)) {
    for (const [index, value] of state.entries()) {
      for (const forged of forgeries(value)) yield state.with(index, forged);
      yield state.toSpliced(index, 1);
    }
  } else if (typeof state === "object" && state !== null) {
    for (const [key, value] of Object.entries(state)) {
      for (const forged of forgeries(value)) yield { ...state, [key]: forged };
      yield Object.fromEntries(Object.entries(state).filter(([name]) => name !== key));
    }
  }
}

/** Loads a state and runs the team. Returns whether the state was refused; throws on any unexpected error. */
async function tryState(team: Team, forged: unknown): Promise<"refused" | "taken"> {
  const before = await team.saveState();
  const error = await team.loadState(untyped(forged)).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error === undefined) {
    const ended = team.run({ signal: AbortSignal.timeout(60_000) }).catch((reason: unknown) => reason);
    const reason = await ended;
    if (reason instanceof Error && !FencedError.isInstance(reason)) throw reason;
    return "taken";
  }
  expect(error).toSatisfy(FencedError.isInstance);
  expect(await team.saveState()).toEqual(before);
  return "refused";
}

describe("a forged or incomplete state", () => {
  it.each(teams)("is rejected as a whole, or runs without an internal error: %s", async (_, make) => {
    const saved = make();
    await saved.run({ task: "go" });
    const counts = { refused: 0, taken: 0 };
    for (const forged of forgeries(throughJson(await saved.saveState()))) counts[await tryState(make(), forged)] += 1;
    expect(counts.refused).toBeGreaterThan(100);
    expect(counts.taken).toBeGreaterThan(0);
  });
});
