import { AbstractAgent, type BaseEvent, EventType, type RunAgentInput } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import { from, type Observable } from "rxjs";
import { describe, expect, it } from "vitest";
import { type AgUiEvent, type ChatItem, toAgUiEvents, UserProxyAgent } from "../../src/index.ts";
import { busyChat } from "../support/busy-chat.ts";
import { collect, types } from "../support/collect.ts";
import { counters } from "../support/counter.ts";
import { untyped } from "../support/untyped.ts";

/** AG-UI's own client, fed with our events: it checks their order and builds messages from them. */
class OurAgent extends AbstractAgent {
  readonly #stream: () => AsyncIterable<ChatItem>;

  constructor(stream: () => AsyncIterable<ChatItem>) {
    super();
    this.#stream = stream;
  }

  run({ threadId, runId }: RunAgentInput): Observable<BaseEvent> {
    return from(toBaseEvents(toAgUiEvents(this.#stream(), { threadId, runId })));
  }
}

async function* toBaseEvents(events: AsyncIterable<AgUiEvent>): AsyncGenerator<BaseEvent> {
  for await (const event of events) yield untyped(EventSchemas.parse(event));
}

describe("toAgUiEvents", () => {
  it("emits events that AG-UI's schemas accept", async () => {
    const events = await collect(toAgUiEvents(busyChat().runStream({ task: "go" }), { threadId: "t", runId: "r" }));
    for (const event of events) expect(EventSchemas.safeParse(event).error).toBeUndefined();
    expect(events[0]).toEqual({ type: EventType.RUN_STARTED, threadId: "t", runId: "r" });
    expect(events.at(-1)).toEqual({
      type: EventType.RUN_FINISHED,
      threadId: "t",
      runId: "r",
      outcome: { type: "success" },
      result: { stopReason: "The limit of 3 turns is reached." },
    });
    const names = events.flatMap((event) => (event.type === "CUSTOM" ? [event.name] : []));
    expect(names).toEqual([
      "fenced.CodeGenerationEvent",
      "fenced.CodeOutputEvent",
      "fenced.CodeExecutionEvent",
      "fenced.image",
    ]);
  });

  it("gives AG-UI's client the messages of the chat", async () => {
    const agent = new OurAgent(() => busyChat().runStream({ task: "go", outputTaskMessages: false }));
    await agent.runAgent();
    const said = agent.messages.flatMap<unknown[]>((message) => {
      if (message.role === "assistant") return [[message.name, message.content, message.toolCalls?.length]];
      return [[message.role, message.content]];
    });
    expect(said).toContainEqual(["helper", "It is 2.", undefined]);
    expect(said).toContainEqual(["coder", "Seven it is.", undefined]);
    expect(said).toContainEqual(["painter", "Look:", undefined]);
    expect(said).toContainEqual(["tool", "2"]);
    expect(said).toContainEqual(["tool", "zero"]);
    expect(said).toContainEqual(["reasoning", "hm"]);
  });

  it("ends with an interrupt if the run waits for a person", async () => {
    const person = new UserProxyAgent({ name: "person", inputFunc: () => undefined });
    const events = await collect(toAgUiEvents(person.runStream({ task: "go" }), { runId: "r" }));
    const outcome = {
      type: "interrupt",
      interrupts: [
        {
          id: "r:person",
          reason: "fenced:person",
          message: '"person" has not answered yet.',
          metadata: { source: "person" },
        },
      ],
    };
    expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome });
    for (const event of events) expect(EventSchemas.safeParse(event).error).toBeUndefined();
  });

  it("ends with RUN_ERROR, and hides the error's message unless onError returns it", async () => {
    const { team, a } = counters(2);
    a.fail = new Error("secret path");
    expect((await collect(toAgUiEvents(team.runStream({ task: "go" })))).at(-1)).toEqual({
      type: "RUN_ERROR",
      message: "An error occurred.",
    });
    const onError = (error: unknown): string => (error === a.fail ? "ours" : "other");
    const events = await collect(toAgUiEvents(team.runStream(), { onError }));
    expect(events.at(-1)).toEqual({ type: "RUN_ERROR", message: "ours" });
  });

  it("closes open texts and reports an aborted run as cancelled", async () => {
    const controller = new AbortController();
    const seen: AgUiEvent[] = [];
    for await (const event of toAgUiEvents(busyChat().runStream({ task: "go", signal: controller.signal }))) {
      seen.push(event);
      if (event.type === "TEXT_MESSAGE_CONTENT" && event.delta !== "go") controller.abort();
    }
    expect(types(seen).slice(-2)).toEqual(["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    expect(seen.at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  it("ends the run when the consumer leaves", async () => {
    const { team } = counters(2);
    for await (const event of toAgUiEvents(team.runStream({ task: "go" }))) {
      if (event.type === "TEXT_MESSAGE_END") break;
    }
    expect((await team.run()).messages).toHaveLength(2);
  });
});
