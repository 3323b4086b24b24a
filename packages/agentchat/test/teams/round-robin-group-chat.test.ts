import { getEventListeners } from "node:events";
import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  type AgentMessage,
  AssistantAgent,
  BaseChatAgent,
  type ChatMessage,
  CodeExecutorAgent,
  ExternalTermination,
  FunctionalTermination,
  isTaskResult,
  MaxMessageTermination,
  messageToText,
  type Response,
  RoundRobinGroupChat,
  type SignalOptions,
  textMessage,
  TextMentionTermination,
} from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { never, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

/** Says its name and how many messages it was given. */
class Counter extends BaseChatAgent {
  readonly received: (readonly ChatMessage[])[] = [];
  fail: Error | undefined;
  resets = 0;

  constructor(name: string) {
    super({ name, description: "counts" });
  }

  override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<Response> {
    if (this.fail !== undefined) throw this.fail;
    this.received.push(messages);
    const content = `${this.name} ${messages.length}`;
    yield { chatMessage: textMessage({ source: this.name, content }), innerMessages: [] };
  }

  override async reset(): Promise<void> {
    this.resets++;
  }
}

function texts(messages: readonly AgentMessage[]): string[] {
  return messages.map(messageToText);
}

function counters(maxTurns?: number): { team: RoundRobinGroupChat; a: Counter; b: Counter } {
  const a = new Counter("a");
  const b = new Counter("b");
  return { team: new RoundRobinGroupChat({ participants: [a, b], maxTurns }), a, b };
}

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

  it("ends with the task if that meets the condition", async () => {
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

  it("goes on where it stopped", async () => {
    const { team, a } = counters(1);
    await team.run({ task: "go" });
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
    expect(texts((await team.run({ task: "more" })).messages)).toEqual(["more", "a 2"]);
    expect(texts(a.received[1] ?? [])).toEqual(["b 2", "more"]);
  });

  it("can be paused from outside and goes on later", async () => {
    const pause = new ExternalTermination();
    const a = new Counter("a");
    const b = new Counter("b");
    const condition = new MaxMessageTermination(4).or(pause);
    const team = new RoundRobinGroupChat({ participants: [a, b], terminationCondition: condition });
    const running = team.run({ task: "go" });
    pause.set();
    const first = await running;
    expect(first.stopReason).toBe("The program asked for the end.");
    const second = await team.run();
    expect(texts([...first.messages, ...second.messages]).slice(0, 3)).toEqual(["go", "a 1", "b 2"]);
    expect(second.messages).toHaveLength(4);
  });

  it("begins again after a reset", async () => {
    const { team, a, b } = counters(1);
    await team.run({ task: "go" });
    await team.reset();
    expect([a.resets, b.resets]).toEqual([1, 1]);
    expect(texts((await team.run({ task: "again" })).messages)).toEqual(["again", "a 1"]);
  });

  it("rejects teams that cannot work", () => {
    expect(() => new RoundRobinGroupChat({ participants: [] })).toThrow("no participants");
    const twins = [new Counter("a"), new Counter("a")];
    expect(() => new RoundRobinGroupChat({ participants: twins })).toThrow('Two participants are named "a"');
    expect(() => counters(0)).toThrow("maxTurns is 0");
  });

  it("does not run twice at once", async () => {
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

  it("ends with the very error that an agent threw, and keeps what was said", async () => {
    const { team, b } = counters(4);
    b.fail = new Error("broken");
    await expect(team.run({ task: "go" })).rejects.toBe(b.fail);
    expect(await team.saveState()).toMatchObject({
      nextSpeaker: 1,
      messages: [{ content: "go" }, { content: "a 1" }],
      unread: { b: [{ content: "go" }, { content: "a 1" }] },
    });
    b.fail = undefined;
    expect(texts((await team.run()).messages)).toEqual(["b 2", "a 1", "b 1", "a 1"]);
    await team.reset();
    expect(texts((await team.run({ task: "again" })).messages)).toEqual(["again", "a 1", "b 2", "a 1", "b 1"]);
  });

  it("says so if an agent never answers", async () => {
    class Silent extends BaseChatAgent {
      override async *onMessagesStream(): AsyncGenerator<Response> {}
    }
    const team = new RoundRobinGroupChat({ participants: [new Silent({ name: "s", description: "" })] });
    await expect(team.run({ task: "go" })).rejects.toThrow('The turn of agent "s" ended without a Response');
  });

  it.each([
    ["twice", [textMessage({ source: "s", content: "2" })]],
    ["and goes on", []],
  ])("says so if an agent answers %s, and takes the first answer", async (_, more) => {
    class Talkative extends BaseChatAgent {
      override async *onMessagesStream(): AsyncGenerator<AgentMessage | Response> {
        yield { chatMessage: textMessage({ source: "s", content: "1" }), innerMessages: [] };
        for (const chatMessage of more) yield { chatMessage, innerMessages: [] };
        yield textMessage({ source: "s", content: "3" });
      }
    }
    const b = new Counter("b");
    const participants = [new Talkative({ name: "s", description: "" }), b];
    const team = new RoundRobinGroupChat({ participants, maxTurns: 1 });
    await expect(team.run({ task: "go" })).rejects.toThrow('Agent "s" went on after its Response');
    expect(texts((await team.run()).messages)).toEqual(["b 2"]);
    expect(b.received.map(texts)).toEqual([["go", "1"]]);
  });
});

describe("RoundRobinGroupChat's condition", () => {
  it("sees the task, then what is new, and nothing before there is something", async () => {
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

  it("may throw: the turn has happened, and the next run goes on after it", async () => {
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

describe("RoundRobinGroupChat, aborted", () => {
  it("does nothing if the signal is aborted already", async () => {
    const { team, a } = counters(1);
    const reason = new Error("no");
    await expect(team.run({ task: "go", signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(a.received).toEqual([]);
    expect(await team.saveState()).toMatchObject({ messages: [] });
  });

  it("ends during a model call and can go on", async () => {
    const controller = new AbortController();
    const reason = new Error("stop");
    const modelClient = new ScriptedModel([never(() => controller.abort(reason)), "done"]);
    const coder = new AssistantAgent({ name: "coder", modelClient });
    const team = new RoundRobinGroupChat({ participants: [coder], maxTurns: 1 });
    await expect(team.run({ task: "go", signal: controller.signal })).rejects.toBe(reason);
    expect(texts((await team.run()).messages)).toEqual(["done"]);
    expect(modelClient.requests[1]?.messages.slice(1)).toEqual([{ role: "user", content: "go", source: "user" }]);
  });

  it("ends during a block, after the block is dead", async () => {
    const controller = new AbortController();
    const executor = new ScriptedExecutor(["hang"]);
    executor.onRun = () => controller.abort("stop");
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const team = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
    await expect(team.run({ task: python("while True: pass"), signal: controller.signal })).rejects.toBe("stop");
    expect(executor.running).toBe(0);
    expect(texts((await team.run()).messages)).toEqual(["ok\n"]);
    expect(executor.runs).toHaveLength(2);
  });

  it("ends between turns", async () => {
    const { team, b } = counters(4);
    const controller = new AbortController();
    const run = async (): Promise<void> => {
      for await (const item of team.runStream({ task: "go", signal: controller.signal })) {
        if ("source" in item && item.source === "a") controller.abort("stop");
      }
    };
    await expect(run()).rejects.toBe("stop");
    expect(b.received).toEqual([]);
    expect(texts((await team.run()).messages).slice(0, 1)).toEqual(["b 2"]);
  });

  it("can be left early and used again", async () => {
    const { team } = counters(2);
    for await (const item of team.runStream({ task: "go" })) {
      if ("source" in item && item.source === "a") break;
    }
    expect(texts((await team.run()).messages)).toEqual(["b 2", "a 1"]);
  });

  it("ends what runs when the stream is left while it waits", async () => {
    const executor = new ScriptedExecutor(["hang"]);
    const running = new Promise<void>((resolve) => {
      executor.onRun = resolve;
    });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const team = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
    const stream = team.runStream({ task: python("while True: pass") });
    await stream.next();
    const waiting = stream.next().catch((error: unknown) => error);
    await running;
    await stream.return();
    expect(await waiting).toMatchObject({ name: "AbortError" });
    expect(executor.running).toBe(0);
    expect(texts((await team.run()).messages)).toEqual(["ok\n"]);
  });

  it("ends in the middle of a streamed answer, with the model's stream", async () => {
    const controller = new AbortController();
    let ended = false;
    const modelClient = new ScriptedModel(["again"]);
    modelClient.createStream = async function* createStream() {
      try {
        for (;;) yield "word ";
      } finally {
        ended = true;
      }
    };
    const coder = new AssistantAgent({ name: "coder", modelClient, modelClientStream: true });
    const team = new RoundRobinGroupChat({ participants: [coder], maxTurns: 1 });
    const run = async (): Promise<void> => {
      let chunks = 0;
      for await (const item of team.runStream({ task: "go", signal: controller.signal })) {
        if ("fullMessageId" in item && ++chunks === 3) controller.abort("stop");
      }
    };
    await expect(run()).rejects.toBe("stop");
    expect(ended).toBe(true);
    expect(await coder.saveState()).toEqual({ modelContext: { messages: [] } });
    expect(await team.saveState()).toMatchObject({ messages: [{ content: "go" }], nextSpeaker: 0 });
  });

  it("passes an abort to every agent", async () => {
    const signals: (AbortSignal | undefined)[] = [];
    class Listener extends BaseChatAgent {
      override async *onMessagesStream(
        _: readonly ChatMessage[],
        { signal }: SignalOptions = {},
      ): AsyncGenerator<Response> {
        signals.push(signal);
        yield { chatMessage: textMessage({ source: this.name, content: "" }), innerMessages: [] };
      }
    }
    const controller = new AbortController();
    const team = new RoundRobinGroupChat({
      participants: [new Listener({ name: "l", description: "" })],
      maxTurns: 1,
    });
    await team.run({ task: "go", signal: controller.signal });
    expect(signals[0]?.aborted).toBe(false);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });
});

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

  it("is taken over whole or not at all", async () => {
    const make = (): { team: RoundRobinGroupChat; modelClient: ScriptedModel } => {
      const modelClient = new ScriptedModel(["one", "two"]);
      const participants = ["x", "y"].map((name) => new AssistantAgent({ name, modelClient, systemMessage: "" }));
      return { modelClient, team: new RoundRobinGroupChat({ participants, maxTurns: 1 }) };
    };
    const first = make();
    await first.team.run({ task: "go" });
    const state = await first.team.saveState();
    const broken = { ...state, agents: { ...Object(state["agents"]), y: { modelContext: {} } } };

    const { team } = make();
    const before = await team.saveState();
    await expect(team.loadState(broken)).rejects.toSatisfy(InvalidInputError.isInstance);
    expect(await team.saveState()).toEqual(before);
  });

  it("is refused if it is another team's, or none", async () => {
    const { team } = counters(1);
    const other = new RoundRobinGroupChat({ participants: [new Counter("x"), new Counter("y")] });
    await expect(team.loadState(await other.saveState())).rejects.toThrow("belongs to a team of x, y");
    await expect(team.loadState({ nextSpeaker: 0 })).rejects.toSatisfy(InvalidInputError.isInstance);
  });
});
