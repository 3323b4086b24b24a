import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  type AgentMessage,
  AssistantAgent,
  BaseChatAgent,
  CodeExecutorAgent,
  ExternalTermination,
  FunctionalTermination,
  isTaskResult,
  MaxMessageTermination,
  type AgentResponse,
  RoundRobinGroupChat,
  textMessage,
  TextMentionTermination,
} from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { Counter, counters, texts } from "../support/counter.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { ScriptedModel } from "../support/scripted-model.ts";

describe("RoundRobinGroupChat", () => {
  it("lets a coder and a runner solve a task", async () => {
    const modelClient = new ScriptedModel([`Let me see.\n\n${python("print(6 * 7)")}`, "It is 42. TERMINATE"]);
    const executor = new ScriptedExecutor();
    const coder = new AssistantAgent({ name: "coder", modelClient });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const team = new RoundRobinGroupChat({
      participants: [coder, runner],
      terminationCondition: new MaxMessageTermination(10).or(new TextMentionTermination("TERMINATE")),
    });
    const { messages, stopReason } = await team.run({ task: "What is 6 times 7?" });
    expect(messages.map(({ source, type }) => [source, type])).toEqual([
      ["user", "TextMessage"],
      ["coder", "TextMessage"],
      ["runner", "TextMessage"],
      ["coder", "TextMessage"],
    ]);
    expect(messages[2]).toMatchObject({ content: "ok\n", metadata: { exitCode: "0" } });
    expect(stopReason).toContain("TERMINATE");
    expect(modelClient.requests[1]?.messages.at(-1)).toEqual({ role: "user", content: "ok\n", source: "runner" });
    expect(executor.stopped).toBe(0);
  });

  it("gives each agent only what it has not heard yet", async () => {
    const { team, a, b } = counters(4);
    const result = await team.run({ task: "go" });
    expect(texts(result.messages)).toEqual(["go", "a 1", "b 2", "a 1", "b 1"]);
    expect(a.received.map(texts)).toEqual([["go"], ["b 2"]]);
    expect(b.received.map(texts)).toEqual([["go", "a 1"], ["a 1"]]);
  });

  it("puts the task's messages first, and counts them", async () => {
    const { team } = counters();
    const task = [textMessage({ source: "user", content: "one" }), textMessage({ source: "user", content: "two" })];
    const a = new Counter("a");
    const limited = new RoundRobinGroupChat({
      participants: [a],
      terminationCondition: new MaxMessageTermination(3),
    });
    expect(texts((await limited.run({ task })).messages)).toEqual(["one", "two", "a 2"]);
    const single = textMessage({ source: "boss", content: "one" });
    expect((await limited.run({ task: single })).messages[0]).toEqual(single);
    await expect(team.run({ task: [] })).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("stops right away if the task meets the condition", async () => {
    const team = new RoundRobinGroupChat({
      participants: [new Counter("a")],
      terminationCondition: new MaxMessageTermination(1),
    });
    expect(texts((await team.run({ task: "go" })).messages)).toEqual(["go"]);
  });

  it("streams every message, then the result", async () => {
    const { team } = counters(2);
    const items = await collect(team.runStream({ task: "go" }));
    expect(types(items)).toEqual(["TextMessage", "TextMessage", "TextMessage", "end"]);
    const last = items.at(-1);
    expect(last !== undefined && isTaskResult(last) && last.messages).toEqual(items.slice(0, -1));
    expect(last).toMatchObject({ stopReason: "The limit of 2 turns is reached." });
  });

  it("keeps chunks out of the result", async () => {
    const modelClient = new ScriptedModel(["one two three"]);
    const coder = new AssistantAgent({ name: "coder", modelClient, modelClientStream: true });
    const team = new RoundRobinGroupChat({ participants: [coder], maxTurns: 1 });
    const items = await collect(team.runStream({ task: "go" }));
    const chunk = "ModelClientStreamingChunkEvent";
    expect(types(items)).toEqual(["TextMessage", chunk, chunk, chunk, "TextMessage", "end"]);
    expect(items.at(-1)).toMatchObject({ messages: [{ source: "user" }, { source: "coder" }] });
  });

  it("continues where it stopped", async () => {
    const { team, a } = counters(1);
    await team.run({ task: "go" });
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
    expect(texts((await team.run({ task: "more" })).messages)).toEqual(["more", "a 2"]);
    expect(texts(a.received[1] ?? [])).toEqual(["b 2", "more"]);
  });

  it("can be paused from outside and continues later", async () => {
    const pause = new ExternalTermination();
    const a = new Counter("a");
    const b = new Counter("b");
    const condition = new MaxMessageTermination(4).or(pause);
    const team = new RoundRobinGroupChat({ participants: [a, b], terminationCondition: condition });
    const running = team.run({ task: "go" });
    pause.set();
    const first = await running;
    expect(first.stopReason).toBe("The program ended the chat.");
    const second = await team.run();
    expect(texts([...first.messages, ...second.messages]).slice(0, 3)).toEqual(["go", "a 1", "b 2"]);
    expect(second.messages).toHaveLength(4);
  });

  it("starts over after a reset", async () => {
    const { team, a, b } = counters(1);
    await team.run({ task: "go" });
    await team.reset();
    expect([a.resets, b.resets]).toEqual([1, 1]);
    expect(texts((await team.run({ task: "again" })).messages)).toEqual(["again", "a 1"]);
  });

  it("rejects an empty team, duplicate names and zero turns", () => {
    expect(() => new RoundRobinGroupChat({ participants: [] })).toThrow('"participants" is empty');
    const twins = [new Counter("a"), new Counter("a")];
    expect(() => new RoundRobinGroupChat({ participants: twins })).toThrow('Two participants are named "a"');
    expect(() => counters(0)).toThrow('"maxTurns" is 0');
  });

  it("cannot be run, reset, saved or loaded during a run", async () => {
    const { team } = counters(1);
    const stream = team.runStream({ task: "go" });
    await stream.next();
    await expect(team.run()).rejects.toThrow("is running and cannot run again now");
    await expect(team.reset()).rejects.toThrow("cannot be reset");
    await expect(team.saveState()).rejects.toThrow("cannot save its state");
    await expect(team.loadState({})).rejects.toThrow("cannot load a state");
    await collect(stream);
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
  });

  it("rejects with the error that an agent threw, and keeps the messages so far", async () => {
    const { team, b } = counters(4);
    b.fail = new Error("broken");
    await expect(team.run({ task: "go" })).rejects.toBe(b.fail);
    expect(await team.saveState()).toMatchObject({
      manager: { nextSpeaker: 1 },
      messages: [{ content: "go" }, { content: "a 1" }],
      unread: { b: [{ content: "go" }, { content: "a 1" }] },
    });
    b.fail = undefined;
    expect(texts((await team.run()).messages)).toEqual(["b 2", "a 1", "b 1", "a 1"]);
    await team.reset();
    expect(texts((await team.run({ task: "again" })).messages)).toEqual(["again", "a 1", "b 2", "a 1", "b 1"]);
  });

  it("rejects if an agent's turn ends without an answer", async () => {
    class Silent extends BaseChatAgent {
      override async *onMessagesStream(): AsyncGenerator<AgentResponse> {}
    }
    const team = new RoundRobinGroupChat({ participants: [new Silent({ name: "s", description: "" })] });
    await expect(team.run({ task: "go" })).rejects.toThrow('The turn of agent "s" ended without an AgentResponse');
  });

  it.each([
    ["twice", [textMessage({ source: "s", content: "2" })]],
    ["and says more", []],
  ])("rejects if an agent answers %s, but keeps the first answer", async (_, more) => {
    class Talkative extends BaseChatAgent {
      override async *onMessagesStream(): AsyncGenerator<AgentMessage | AgentResponse> {
        yield { chatMessage: textMessage({ source: "s", content: "1" }), innerMessages: [] };
        for (const chatMessage of more) yield { chatMessage, innerMessages: [] };
        yield textMessage({ source: "s", content: "3" });
      }
    }
    const b = new Counter("b");
    const participants = [new Talkative({ name: "s", description: "" }), b];
    const team = new RoundRobinGroupChat({ participants, maxTurns: 1 });
    await expect(team.run({ task: "go" })).rejects.toThrow('Agent "s" yielded more after its AgentResponse');
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
    expect(b.received.map(texts)).toEqual([["go", "1"]]);
  });
});

describe("RoundRobinGroupChat's condition", () => {
  it("is checked with the task, then with the new messages of each turn", async () => {
    const seen: string[][] = [];
    const condition = new FunctionalTermination((messages) => {
      seen.push(texts(messages));
      return false;
    });
    const participants = [new Counter("a"), new Counter("b")];
    const team = new RoundRobinGroupChat({ participants, terminationCondition: condition, maxTurns: 2 });
    await team.run({ task: "go" });
    await team.run();
    expect(seen).toEqual([["go"], ["a 1"], ["b 2"], ["a 1"], ["b 1"]]);
  });

  it("can throw without undoing the turn, and the next run continues after it", async () => {
    const error = new Error("broken");
    let broken = true;
    const condition = new FunctionalTermination((messages) => {
      if (broken && messages.at(-1)?.source === "a") throw error;
      return false;
    });
    const participants = [new Counter("a"), new Counter("b")];
    const team = new RoundRobinGroupChat({ participants, terminationCondition: condition, maxTurns: 1 });
    await expect(team.run({ task: "go" })).rejects.toBe(error);
    broken = false;
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
  });
});
