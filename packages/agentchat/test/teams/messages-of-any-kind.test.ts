import { setTimeout as delay } from "node:timers/promises";
import { InvalidInputError, type JsonValue } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  type AgentMessage,
  AssistantAgent,
  BaseChatAgent,
  CodeExecutorAgent,
  type AgentResponse,
  RoundRobinGroupChat,
  textMessage,
  tool,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { Counter } from "../support/counter.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";
import { untyped } from "../support/untyped.ts";

/** Yields whatever it is given, as an agent in JavaScript could. */
class Anything extends BaseChatAgent {
  readonly #items: readonly unknown[];

  constructor(...items: readonly unknown[]) {
    super({ name: "anything", description: "anything" });
    this.#items = items;
  }

  override async *onMessagesStream(): AsyncGenerator<AgentMessage | AgentResponse> {
    for (const item of this.#items) yield untyped(item);
  }
}

function teamOf(...participants: readonly BaseChatAgent[]): RoundRobinGroupChat {
  return new RoundRobinGroupChat({ participants, maxTurns: 1 });
}

/** Saves a team and loads the state into another. */
async function carryOver(from: RoundRobinGroupChat, to: RoundRobinGroupChat): Promise<void> {
  await to.loadState(throughJson(await from.saveState()));
}

describe("an invalid task", () => {
  it.each([
    [5],
    [[5]],
    [null],
    [[null]],
    [{}],
    [[{ type: "TextMessage" }]],
    [{ ...textMessage({ source: "a", content: "b" }), type: "Unknown" }],
    [[textMessage({ source: "a", content: "b" }), { ...textMessage({ source: "a", content: "b" }), content: 5 }]],
  ])("is rejected: %j", async (task) => {
    const options = { task: untyped(task) };
    const counter = new Counter("a");
    await expect(teamOf(counter).run(options)).rejects.toSatisfy(InvalidInputError.isInstance);
    await expect(counter.run(options)).rejects.toSatisfy(InvalidInputError.isInstance);
    expect(counter.received).toEqual([]);
  });

  it("is rejected by onMessages", async () => {
    const agent = new AssistantAgent({ name: "a", modelClient: new ScriptedModel(["hi"]) });
    await expect(agent.onMessages(untyped([5]))).rejects.toThrow(/messages\[0\] is not a message: it is a number/);
  });
});

describe("an item from an agent that is not a message", () => {
  const answer = { chatMessage: textMessage({ source: "anything", content: "hi" }), innerMessages: [] };
  it.each([
    ["an item of an unknown type", [{ type: "Mystery", id: "1", content: "x" }, answer]],
    ["a number", [5, answer]],
    ["an answer of an unknown type", [{ ...answer, chatMessage: { ...answer.chatMessage, type: "Mystery" } }]],
    ["an unknown inner message", [{ ...answer, innerMessages: [{ id: "1", type: "Mystery" }] }]],
  ])("is rejected: %s", async (_, items) => {
    const team = teamOf(new Anything(...items));
    await expect(team.run({ task: "x" })).rejects.toThrow(/agent "anything".* is not a message/);
    await carryOver(team, teamOf(new Anything()));
  });
});

describe("unusual data in a team", () => {
  it("a display with a key __proto__ is saved and loaded", async () => {
    const data = Object.fromEntries([
      ["text/plain", "x"],
      ["__proto__", { a: 1 }],
    ]);
    const make = (): RoundRobinGroupChat => {
      const codeExecutor = new ScriptedExecutor([codeResult({ displays: [{ data, files: [] }] })]);
      const modelClient = new ScriptedModel(["```python\nx\n```", "done"]);
      return teamOf(new CodeExecutorAgent({ name: "a", codeExecutor, modelClient }));
    };
    const team = make();
    await team.run({ task: "go" });
    expect(JSON.stringify(await team.saveState())).toContain('"__proto__":{"a":1}');
    await carryOver(team, make());
  });

  const nested = (depth: number): RoundRobinGroupChat => {
    const modelClient = new ScriptedModel([`${"[".repeat(depth)}${"]".repeat(depth)}`]);
    return teamOf(new AssistantAgent({ name: "a", modelClient, outputSchema: z.unknown() }));
  };

  it("an answer nested 500 levels deep can be loaded", async () => {
    const team = nested(500);
    expect((await team.run({ task: "go" })).messages).toHaveLength(2);
    await carryOver(team, nested(1));
  });

  it.each([501, 3000, 100_000])("an answer nested %i levels deep is rejected", async (depth) => {
    const team = nested(depth);
    await expect(team.run({ task: "go" })).rejects.toThrow(/more than 500 levels deep/);
    await carryOver(team, nested(1));
  });

  it("a display that is nested too deep is left out of the state", async () => {
    let deep: JsonValue = 1;
    for (let depth = 0; depth < 5000; depth++) deep = [deep];
    const codeExecutor = new ScriptedExecutor([
      codeResult({ displays: [{ data: { "application/json": deep }, files: [] }] }),
    ]);
    const modelClient = new ScriptedModel(["```python\nx\n```", "done"]);
    const team = teamOf(new CodeExecutorAgent({ name: "a", codeExecutor, modelClient }));
    await team.run({ task: "go" });
    expect(JSON.stringify(await team.saveState())).toContain("left out: ");
  });

  it("an agent named __proto__ keeps its memory", async () => {
    const make = (answer: string): [RoundRobinGroupChat, ScriptedModel] => {
      const modelClient = new ScriptedModel([answer]);
      return [teamOf(new AssistantAgent({ name: "__proto__", modelClient }), new Counter("b")), modelClient];
    };
    const [team] = make("one");
    await team.run({ task: "go" });
    const [again, modelClient] = make("two");
    await carryOver(team, again);
    await again.run();
    await again.run();
    expect(JSON.stringify(modelClient.requests[0]?.messages)).toContain('"one"');
  });

  it("usage that is NaN counts as zero", async () => {
    const usage = { promptTokens: Number.NaN, completionTokens: 3 };
    const team = teamOf(new AssistantAgent({ name: "a", modelClient: new ScriptedModel([{ content: "hi", usage }]) }));
    const { messages } = await team.run({ task: "go" });
    expect(messages.at(-1)?.modelsUsage).toEqual({ promptTokens: 0, completionTokens: 3 });
    await carryOver(team, teamOf(new Counter("a")));
  });

  it("a tool that throws an object without a prototype fails like any other", async () => {
    const bad = tool({
      name: "bad",
      description: "throws",
      parameters: z.object({}),
      execute: () => {
        throw Object.create(null);
      },
    });
    const modelClient = new ScriptedModel([[call("bad")]]);
    const { messages } = await new AssistantAgent({ name: "a", modelClient, tools: [bad] }).run({ task: "go" });
    expect(messages.at(-1)).toMatchObject({ results: [{ isError: true }] });
  });
});

describe("a team whose agents never wait", () => {
  it("lets timers fire, so that it can be aborted", async () => {
    const team = new RoundRobinGroupChat({ participants: [new Counter("a"), new Counter("b")], maxTurns: 1_000_000 });
    let turns = 0;
    const abort = new AbortController();
    const stopped = delay(1).then(() => abort.abort(new Error("enough")));
    const run = async (): Promise<void> => {
      for await (const _ of team.runStream({ task: "go", signal: abort.signal })) turns++;
    };
    await expect(run()).rejects.toThrow("enough");
    await stopped;
    expect(turns).toBeLessThan(1_000_000);
    const timedOut = collect(team.runStream({ signal: AbortSignal.timeout(20) }));
    await expect(timedOut).rejects.toHaveProperty("name", "TimeoutError");
  });
});
