import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { AssistantAgent, RoundRobinGroupChat } from "../../src/index.ts";
import { Counter, counters, texts } from "../support/counter.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

describe("RoundRobinGroupChat's state", () => {
  it("survives JSON", async () => {
    const make = (answers: readonly string[]): { team: RoundRobinGroupChat; modelClient: ScriptedModel } => {
      const modelClient = new ScriptedModel(answers);
      const coder = new AssistantAgent({ name: "coder", modelClient });
      return { modelClient, team: new RoundRobinGroupChat({ participants: [new Counter("a"), coder], maxTurns: 1 }) };
    };
    const first = make(["hello"]);
    await first.team.run({ task: "go" });
    await first.team.run();
    await first.team.run();
    const state = await first.team.saveState();
    const saved = throughJson(state);
    expect(saved).toEqual(state);

    const second = make(["back again"]);
    await second.team.loadState(saved);
    expect(texts((await second.team.run()).messages)).toEqual(["back again"]);
    expect(second.modelClient.requests[0]?.messages.map(({ content }) => content).slice(1)).toEqual([
      "go",
      "a 1",
      "hello",
      "a 1",
    ]);
  });

  it("is loaded completely or not at all", async () => {
    const make = (): { team: RoundRobinGroupChat; modelClient: ScriptedModel } => {
      const modelClient = new ScriptedModel(["one", "two"]);
      const participants = ["x", "y"].map((name) => new AssistantAgent({ name, modelClient, systemMessage: "" }));
      return { modelClient, team: new RoundRobinGroupChat({ participants, maxTurns: 1 }) };
    };
    const first = make();
    await first.team.run({ task: "go" });
    const state = await first.team.saveState();
    const broken = { ...state, participants: { ...Object(state["participants"]), y: { modelContext: {} } } };

    const { team } = make();
    const before = await team.saveState();
    await expect(team.loadState(broken)).rejects.toSatisfy(InvalidInputError.isInstance);
    expect(await team.saveState()).toEqual(before);
  });

  it("is rejected if it is malformed or from another team", async () => {
    const { team } = counters(1);
    const other = new RoundRobinGroupChat({ participants: [new Counter("x"), new Counter("y")] });
    await expect(team.loadState(await other.saveState())).rejects.toThrow("belongs to a team of x, y");
    const larger = new RoundRobinGroupChat({ participants: ["x", "y", "z"].map((name) => new Counter(name)) });
    await expect(other.loadState(await larger.saveState())).rejects.toThrow("belongs to a team of x, y, z");
    await expect(team.loadState({ nextSpeaker: 0 })).rejects.toSatisfy(InvalidInputError.isInstance);
  });
});
