import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import {
  AssistantAgent,
  BaseChatAgent,
  type ChatMessage,
  CodeExecutorAgent,
  type AgentResponse,
  RoundRobinGroupChat,
  type SignalOptions,
  textMessage,
} from "../../src/index.ts";
import { counters, texts } from "../support/counter.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { never, ScriptedModel } from "../support/scripted-model.ts";

describe("RoundRobinGroupChat, aborted", () => {
  it("does nothing if the signal is already aborted", async () => {
    const { team, a } = counters(1);
    const reason = new Error("no");
    await expect(team.run({ task: "go", signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(a.received).toEqual([]);
    expect(await team.saveState()).toMatchObject({ messages: [] });
  });

  it("stops during a model call and can be resumed", async () => {
    const controller = new AbortController();
    const reason = new Error("stop");
    const modelClient = new ScriptedModel([never(() => controller.abort(reason)), "done"]);
    const coder = new AssistantAgent({ name: "coder", modelClient });
    const team = new RoundRobinGroupChat({ participants: [coder], maxTurns: 1 });
    await expect(team.run({ task: "go", signal: controller.signal })).rejects.toBe(reason);
    expect(texts((await team.run()).messages)).toEqual(["done"]);
    expect(modelClient.requests[1]?.messages.slice(1)).toEqual([{ role: "user", content: "go", source: "user" }]);
  });

  it("rejects only after a running code block has stopped, and can be resumed", async () => {
    const controller = new AbortController();
    const executor = new ScriptedExecutor(["hang"]);
    executor.onRun = () => controller.abort("stop");
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const team = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
    await expect(team.run({ task: python("while True: pass"), signal: controller.signal })).rejects.toBe("stop");
    expect(executor.running).toBe(0);
    expect(texts((await team.run()).messages)).toEqual(["ok\n"]);
    expect(executor.given).toHaveLength(2);
  });

  it("stops between turns", async () => {
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

  it("can be resumed after the consumer has left early", async () => {
    const { team } = counters(2);
    for await (const item of team.runStream({ task: "go" })) {
      if ("source" in item && item.source === "a") break;
    }
    expect(texts((await team.run()).messages)).toEqual(["b 2", "a 1"]);
  });

  it("stops running code if the stream is returned while a read is pending", async () => {
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

  it("stops in the middle of a streamed answer, and closes the model's stream", async () => {
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
    expect(await team.saveState()).toMatchObject({ messages: [{ content: "go" }], manager: { nextSpeaker: 0 } });
  });

  it("passes agents a signal that aborts with the run, and leaves no abort listener behind", async () => {
    const controller = new AbortController();
    const signals: (AbortSignal | undefined)[] = [];
    class Listener extends BaseChatAgent {
      override async *onMessagesStream(
        _: readonly ChatMessage[],
        { signal }: SignalOptions = {},
      ): AsyncGenerator<AgentResponse> {
        if (signals.push(signal) === 2) controller.abort("stop");
        signal?.throwIfAborted();
        yield { chatMessage: textMessage({ source: this.name, content: "" }), innerMessages: [] };
      }
    }
    const team = new RoundRobinGroupChat({
      participants: [new Listener({ name: "l", description: "" })],
      maxTurns: 1,
    });
    await team.run({ task: "go", signal: controller.signal });
    expect(signals[0]?.aborted).toBe(false);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await expect(team.run({ task: "again", signal: controller.signal })).rejects.toBe("stop");
    expect(signals[1]?.reason).toBe("stop");
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });
});
