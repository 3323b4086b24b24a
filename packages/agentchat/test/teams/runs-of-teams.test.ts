import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  type AgentResponse,
  BaseChatAgent,
  isTaskResult,
  MaxMessageTermination,
  RoundRobinGroupChat,
  textMessage,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { Counter, counters, texts } from "../support/counter.ts";
import { Echo, sources } from "../support/echo.ts";
import { untyped } from "../support/untyped.ts";

describe("a team's run", () => {
  it("omits the task's messages if outputTaskMessages is false", async () => {
    const { team, a } = counters(2);
    const items = await collect(team.runStream({ task: "go", outputTaskMessages: false }));
    expect(items.find(isTaskResult)?.messages).toEqual(items.slice(0, -1));
    expect(sources(items.find(isTaskResult)?.messages ?? [])).toEqual(["a", "b"]);
    expect(a.received.map(texts)).toEqual([["go"]]);
    expect(texts((await new Counter("c").run({ task: "go", outputTaskMessages: false })).messages)).toEqual(["c 1"]);
    expect(() => team.runStream({ task: "go", outputTaskMessages: untyped("no") })).toThrow("outputTaskMessages");
  });

  it("accepts a list of messages, and rejects an empty or invalid one", async () => {
    const participants = [new Echo("a"), new Echo("b")];
    const team = new RoundRobinGroupChat({ participants, terminationCondition: new MaxMessageTermination(4) });
    const task = ["1", "2", "3"].map((content) => textMessage({ source: "user", content }));
    const { messages, stopReason } = await team.run({ task });
    expect(texts(messages)).toEqual(["1", "2", "3", "1"]);
    expect(stopReason).toContain("4 messages");
    await expect(team.run({ task: untyped(["no message"]) })).rejects.toThrow("is not a message");
    await expect(team.run({ task: [] })).rejects.toThrow("empty list");
  });

  it("can be cancelled and resumed", async () => {
    const participants = ["a", "b", "c", "d"].map((name) => new Echo(name));
    const team = new RoundRobinGroupChat({ participants, maxTurns: 1000 });
    const controller = new AbortController();
    const run = team.run({ task: "go", signal: controller.signal });
    setImmediate(() => controller.abort(new Error("cancelled")));
    await expect(run).rejects.toThrow("cancelled");
    expect((await team.run()).stopReason).toBe("The limit of 1000 turns is reached.");
  });

  it("emits a SelectSpeakerEvent for each turn if emitTeamEvents is set", async () => {
    const participants = [new Echo("a"), new Echo("b")];
    const team = new RoundRobinGroupChat({ participants, maxTurns: 2, emitTeamEvents: true, name: "pair" });
    const { messages } = await team.run({ task: "go" });
    expect(messages.map(({ type, source }) => [type, source])).toEqual([
      ["TextMessage", "user"],
      ["SelectSpeakerEvent", "pair"],
      ["TextMessage", "a"],
      ["SelectSpeakerEvent", "pair"],
      ["TextMessage", "b"],
    ]);
    expect(messages[3]).toMatchObject({ content: ["b"] });
  });
});

/** Records when it is paused and resumed. */
class Busy extends BaseChatAgent {
  calls: string[] = [];
  override async *onMessagesStream(): AsyncGenerator<AgentResponse> {
    yield { chatMessage: textMessage({ source: this.name, content: "done" }), innerMessages: [] };
  }
  override async onPause(): Promise<void> {
    this.calls.push("pause");
  }
  override async onResume(): Promise<void> {
    this.calls.push("resume");
  }
}

describe("a paused team", () => {
  it("starts no turn until it is resumed, and notifies its agents, also those of nested teams", async () => {
    const busy = new Busy({ name: "busy", description: "" });
    const inner = new RoundRobinGroupChat({ participants: [busy], maxTurns: 1, name: "inner" });
    const echo = new Echo("echo");
    const team = new RoundRobinGroupChat({ participants: [echo, inner], maxTurns: 2 });
    const items = team.runStream({ task: "go" });
    await items.next();
    await team.pause();
    expect(busy.calls).toEqual(["pause"]);
    let came = false;
    const next = items.next().then((step) => {
      came = true;
      return step;
    });
    for (let look = 0; look < 20; look++) await nextTurn();
    expect([came, echo.turns]).toEqual([false, 0]);
    await team.resume();
    expect((await next).value).toMatchObject({ source: "echo" });
    expect(busy.calls).toEqual(["pause", "resume"]);
    expect(sources((await collect(items)).filter((item) => "source" in item))).toEqual(["busy"]);
  });

  it("can be aborted", async () => {
    const { team } = counters(2);
    await team.pause();
    const controller = new AbortController();
    const run = team.run({ task: "go", signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(run).rejects.toThrow("enough");
    await team.resume();
    expect(sources((await team.run()).messages)).toEqual(["a", "b"]);
  });
});
