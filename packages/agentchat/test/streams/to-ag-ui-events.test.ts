import { AbstractAgent, type BaseEvent, EventType, type RunAgentInput } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import { from, type Observable } from "rxjs";
import { describe, expect, it } from "vitest";
import { type AgUiEvent, type ChatItem, toAgUiEvents, UserProxyAgent } from "../../src/index.ts";
import { busyChat } from "../support/busy-chat.ts";
import { collect, types } from "../support/collect.ts";
import { counters } from "../support/counter.ts";
import { untyped } from "../support/untyped.ts";

/** AG-UI's own client over our events: it checks their order, and makes messages of them. */
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
  it("makes events that AG-UI's schemas accept", async () => {
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

  it("becomes messages in AG-UI's client", async () => {
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

  it("ends with an interrupt where a person is waited for", async () => {
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

  it("tells of an error in words of the server's choice, and ends", async () => {
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

  it("says that a run was cancelled, and closes the texts that were open", async () => {
    const controller = new AbortController();
    const seen: AgUiEvent[] = [];
    for await (const event of toAgUiEvents(busyChat().runStream({ task: "go", signal: controller.signal }))) {
      seen.push(event);
      if (event.type === "TEXT_MESSAGE_CONTENT" && event.delta !== "go") controller.abort();
    }
    expect(types(seen).slice(-2)).toEqual(["TEXT_MESSAGE_END", "RUN_FINISHED"]);
    expect(seen.at(-1)).toMatchObject({ outcome: { type: "cancelled" } });
  });

  it("ends the run when it is left", async () => {
    const { team } = counters(2);
    for await (const event of toAgUiEvents(team.runStream({ task: "go" }))) {
      if (event.type === "TEXT_MESSAGE_END") break;
    }
    expect((await team.run()).messages).toHaveLength(2);
  });
});
