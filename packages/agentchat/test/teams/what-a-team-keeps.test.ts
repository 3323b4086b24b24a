import { expect, it } from "vitest";
import {
  AssistantAgent,
  BaseChatAgent,
  type ChatMessage,
  FunctionalTermination,
  isTaskResult,
  type AgentResponse,
  RoundRobinGroupChat,
  type SignalOptions,
} from "../../src/index.ts";
import { types } from "../support/collect.ts";
import { ScriptedModel } from "../support/scripted-model.ts";

/** Lets another agent answer, and reports its events only along with the answer. */
class Delegate extends BaseChatAgent {
  readonly #inner: AssistantAgent;

  constructor(inner: AssistantAgent) {
    super({ name: "delegate", description: "asks another one" });
    this.#inner = inner;
  }

  override async *onMessagesStream(
    messages: readonly ChatMessage[],
    options?: SignalOptions,
  ): AsyncGenerator<AgentResponse, void, void> {
    yield await this.#inner.onMessages(messages, options);
  }
}

it("A team can be saved, reset and run again as soon as its result is read", async () => {
  const agent = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel(["one", "two"]) });
  const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
  for await (const item of team.runStream({ task: "go" })) {
    if (!isTaskResult(item)) continue;
    expect(await team.saveState()).toMatchObject({ messages: [{ content: "go" }, { content: "one" }] });
    await team.reset();
    expect((await team.run({ task: "again" })).messages).toMatchObject([{ content: "again" }, { content: "two" }]);
  }
});

it("A team keeps events that an agent reports only along with its answer", async () => {
  const modelClient = new ScriptedModel([{ content: "seven", thought: "three and four" }]);
  const participants = [new Delegate(new AssistantAgent({ name: "helper", modelClient }))];
  const seen: string[] = [];
  const terminationCondition = new FunctionalTermination((messages) => {
    seen.push(...types(messages));
    return false;
  });
  const team = new RoundRobinGroupChat({ participants, terminationCondition, maxTurns: 1 });
  const { messages } = await team.run({ task: "3 + 4?" });
  expect(types(messages)).toEqual(["TextMessage", "ThoughtEvent", "TextMessage"]);
  expect(seen).toContain("ThoughtEvent");
  expect(await team.saveState()).toMatchObject({ messages: [{}, { type: "ThoughtEvent" }, {}] });
});
