import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  type ChatMessage,
  MessageFilterAgent,
  type PerSourceFilter,
  RoundRobinGroupChat,
  textMessage,
  AssistantAgent,
} from "../../src/index.ts";
import { Echo } from "../support/echo.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const messages: readonly ChatMessage[] = [
  ["user", "u1"],
  ["a", "a1"],
  ["b", "b1"],
  ["a", "a2"],
  ["user", "u2"],
  ["a", "a3"],
].map(([source = "", content = ""]) => textMessage({ source, content }));

/** What a model behind the filter is shown. */
async function heard(perSource: readonly PerSourceFilter[]): Promise<unknown[]> {
  const model = new ScriptedModel(["ok"]);
  const agent = new AssistantAgent({ name: "inner", modelClient: model, systemMessage: "" });
  await new MessageFilterAgent({ name: "inner", agent, perSource }).onMessages(messages);
  return model.requests[0]?.messages.map(({ content }) => content) ?? [];
}

describe("MessageFilterAgent", () => {
  it.each<[readonly PerSourceFilter[], string[]]>([
    [[{ source: "user" }], ["u1", "u2"]],
    [[{ source: "user", position: "first" }], ["u1"]],
    [[{ source: "a", position: "last" }], ["a3"]],
    [[{ source: "a", position: "last", count: 2 }], ["a2", "a3"]],
    [[{ source: "a", position: "first", count: 9 }], ["a1", "a2", "a3"]],
    [
      [
        { source: "a", position: "last", count: 1 },
        { source: "user", position: "first" },
      ],
      ["u1", "a3"],
    ],
    [[{ source: "nobody" }], []],
  ])("passes on %j", async (perSource, expected) => {
    expect(await heard(perSource)).toEqual(expected);
  });

  it("takes part in a team, with the state of the agent inside", async () => {
    const make = () => {
      const filter = new MessageFilterAgent({ name: "b", agent: new Echo("b"), perSource: [{ source: "a" }] });
      return new RoundRobinGroupChat({ participants: [new Echo("a"), filter], maxTurns: 2 });
    };
    const team = make();
    const { messages: said } = await team.run({ task: "hello" });
    expect(said.map((message) => [message.source, "content" in message && message.content])).toEqual([
      ["user", "hello"],
      ["a", "hello"],
      ["b", "hello"],
    ]);
    const again = make();
    await again.loadState(throughJson(await team.saveState()));
    expect(await again.saveState()).toEqual(await team.saveState());
    await again.reset();
    expect((await again.saveState())["participants"]).toMatchObject({ b: { agent: { last: "" } } });
  });

  it("rejects a source that is named twice, a count without a position, and what is no agent", () => {
    const agent = new Echo("a");
    expect(() => new MessageFilterAgent({ name: "a", agent, perSource: [{ source: "x" }, { source: "x" }] })).toThrow(
      InvalidInputError,
    );
    expect(() => new MessageFilterAgent({ name: "a", agent: {} as Echo, perSource: [] })).toThrow("must be an agent");
    expect(() => new MessageFilterAgent({ name: "a", agent, perSource: [{ source: "x", count: 2 }] })).toThrow(
      /count.* needs `position`/,
    );
  });
});
