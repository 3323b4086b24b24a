import { describe, expect, it } from "vitest";
import {
  type ApprovalRequest,
  type ApprovalResponse,
  CodeExecutorAgent,
  isTaskResult,
  RoundRobinGroupChat,
  SelectorGroupChat,
  UserProxyAgent,
  WaitingForPersonError,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { texts } from "../support/counter.ts";
import { Echo, sources } from "../support/echo.ts";
import { python } from "../support/python.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const waitingFor = [{ source: "person", reason: '"person" has not answered yet.' }];

function person(answer?: string): UserProxyAgent {
  return new UserProxyAgent({ name: "person", inputFunc: () => answer });
}

describe("a run that waits for a person", () => {
  it("returns waitingFor, and resumes in another team that has the answer", async () => {
    const make = (answer?: string): RoundRobinGroupChat =>
      new RoundRobinGroupChat({ participants: [new Echo("a"), person(answer), new Echo("b")], maxTurns: 3 });
    const first = make();
    const items = await collect(first.runStream({ task: "go" }));
    const result = items.find(isTaskResult);
    expect(result).toMatchObject({ stopReason: '"person" has not answered yet.', waitingFor });
    expect(result?.messages.map(({ type }) => type)).toEqual(["TextMessage", "TextMessage", "UserInputRequestedEvent"]);
    const state = throughJson(await first.saveState());

    const second = make();
    await second.loadState(state);
    expect(await second.run()).toMatchObject({ waitingFor, messages: [{ type: "UserInputRequestedEvent" }] });

    const third = make("yes");
    await third.loadState(throughJson(await second.saveState()));
    const { messages, waitingFor: nobody } = await third.run();
    expect(nobody).toBeUndefined();
    expect(texts(messages)).toEqual(["", "yes", "go", "yes"]);
  });

  it("does not select the speaker again when it resumes", async () => {
    const modelClient = new ScriptedModel(["person", "a"]);
    const answers: string[] = [];
    const asked = new UserProxyAgent({ name: "person", inputFunc: async () => answers[0] });
    const team = new SelectorGroupChat({
      participants: [new Echo("a"), asked, new Echo("b")],
      modelClient,
      maxTurns: 2,
    });
    expect(await team.run({ task: "go" })).toMatchObject({ waitingFor });
    answers.push("yes");
    expect(sources((await team.run()).messages)).toEqual(["person", "person", "a"]);
    expect(modelClient.requests).toHaveLength(2);
  });

  it("can wait for a person in a nested team", async () => {
    const answers: string[] = [];
    const asked = new UserProxyAgent({ name: "person", inputFunc: () => answers[0] });
    const inner = new RoundRobinGroupChat({ participants: [new Echo("a"), asked], maxTurns: 2, name: "inner" });
    const team = new RoundRobinGroupChat({ participants: [inner, new Echo("b")], maxTurns: 2 });
    const { messages, waitingFor: waiting } = await team.run({ task: "go" });
    expect([sources(messages), waiting]).toEqual([["user", "a", "person"], waitingFor]);
    const state = throughJson(await team.saveState());
    await team.loadState(state);
    answers.push("yes");
    expect(sources((await team.run()).messages)).toEqual(["person", "person", "a", "b"]);
  });

  it("shows the selector everything that a nested team said before and after the wait", async () => {
    const answers: string[] = [];
    const asked = new UserProxyAgent({ name: "person", inputFunc: () => answers[0] });
    const inner = new RoundRobinGroupChat({ participants: [new Echo("a"), asked], maxTurns: 2, name: "inner" });
    const modelClient = new ScriptedModel(["inner", "b"]);
    const participants = [inner, new Echo("b"), new Echo("c")];
    const team = new SelectorGroupChat({ participants, modelClient, maxTurns: 2 });
    expect(await team.run({ task: "go" })).toMatchObject({ waitingFor });
    answers.push("yes");
    await team.run();
    expect(modelClient.requests[1]?.messages[0]?.content).toContain("user: go\n\na: go\n\nperson: yes");
  });

  it("waits for an approval before it runs code, and resumes from a saved state", async () => {
    const executor = new ScriptedExecutor();
    const decisions: { approved: boolean; reason: string }[] = [];
    const make = (): RoundRobinGroupChat => {
      const approvalFunc = (): { approved: boolean; reason: string } | undefined => decisions[0];
      const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor, approvalFunc });
      return new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
    };
    const first = make();
    const { waitingFor: waiting } = await first.run({ task: python("print(7)") });
    expect(waiting).toEqual([{ source: "runner", reason: 'The code of "runner" is waiting for approval.' }]);
    expect(executor.given).toEqual([]);
    decisions.push({ approved: true, reason: "" });
    const second = make();
    await second.loadState(throughJson(await first.saveState()));
    expect(texts((await second.run()).messages)).toEqual(["ok\n"]);
    expect(executor.given).toHaveLength(1);
  });

  it("waits for an approval of code that an agent wrote, and resumes with that code from a saved state", async () => {
    const executor = new ScriptedExecutor([codeResult({ exitCode: 1, output: "no\n" }), codeResult({ output: "7\n" })]);
    const modelClient = new ScriptedModel([
      python("print(x)"),
      JSON.stringify({ reason: "x is missing", retry: true }),
      python("print(7)"),
      "There are seven.",
    ]);
    const seen: string[] = [];
    const make = (approve: boolean): RoundRobinGroupChat => {
      const approvalFunc = ({ blocks }: ApprovalRequest): ApprovalResponse | undefined => {
        seen.push(...blocks.map(({ code }) => code));
        return approve ? { approved: true, reason: "" } : undefined;
      };
      const options = { codeExecutor: executor, modelClient, approvalFunc, maxRetriesOnError: 1 };
      const runner = new CodeExecutorAgent({ name: "runner", ...options });
      return new RoundRobinGroupChat({ participants: [new Echo("a"), runner], maxTurns: 2 });
    };
    const first = make(false);
    const { waitingFor: waiting } = await first.run({ task: "How many?" });
    expect(waiting).toEqual([{ source: "runner", reason: 'The code of "runner" is waiting for approval.' }]);
    const second = make(false);
    await second.loadState(throughJson(await first.saveState()));
    expect(await second.run()).toMatchObject({ waitingFor: waiting });
    expect([modelClient.requests.length, executor.given]).toEqual([1, []]);

    const third = make(true);
    await third.loadState(throughJson(await second.saveState()));
    const { messages, waitingFor: nobody } = await third.run();
    expect(nobody).toBeUndefined();
    expect(seen).toEqual(["print(x)", "print(x)", "print(x)", "print(7)"]);
    expect(texts(messages).at(-1)).toBe("There are seven.");
    expect(executor.given).toHaveLength(2);
    // Each message of the turn is there once: the task and its echo.
    const told = modelClient.requests[1]?.messages.filter(({ content }) => content === "How many?");
    expect(told).toHaveLength(2);
  });

  it("waits for an approval without a team, and resumes with further messages", async () => {
    const executor = new ScriptedExecutor([codeResult({ output: "7\n" })]);
    const modelClient = new ScriptedModel([python("print(7)"), "Seven, quickly."]);
    const make = (answer: ApprovalResponse | undefined): CodeExecutorAgent =>
      new CodeExecutorAgent({ name: "runner", codeExecutor: executor, modelClient, approvalFunc: () => answer });
    const first = make(undefined);
    expect(await first.run({ task: "How many?" })).toMatchObject({ waitingFor: [{ source: "runner" }] });
    const second = make({ approved: true, reason: "" });
    await second.loadState(throughJson(await first.saveState()));
    const { messages } = await second.run({ task: "Be quick." });
    expect(texts(messages).at(-1)).toBe("Seven, quickly.");
    const contents = modelClient.requests[1]?.messages.map(({ content }) => content);
    expect(contents?.slice(1, 5)).toEqual(["How many?", python("print(7)"), "Be quick.", "7\n"]);
    expect(Object.keys(await second.saveState())).toEqual(["modelContext"]);
    await first.reset();
    expect(Object.keys(await first.saveState())).toEqual(["modelContext"]);
  });

  it("returns waitingFor from an agent without a team, whose onMessages rejects", async () => {
    expect(await person().run({ task: "go" })).toMatchObject({ waitingFor, stopReason: waitingFor[0]?.reason });
    await expect(person().onMessages([])).rejects.toSatisfy(WaitingForPersonError.isInstance);
  });
});
