import * as ai6 from "ai";
import * as ai7 from "ai-7";
import { describe, expect, it } from "vitest";
import {
  type ChatItem,
  CodeExecutorAgent,
  toolCallRequestEvent,
  toUIMessageStream,
  UserProxyAgent,
} from "../../src/index.ts";
import { busyChat } from "../support/busy-chat.ts";
import { collect } from "../support/collect.ts";
import { counters } from "../support/counter.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";

/** Reads a response as `useChat` does: server-sent events, checked against the SDK's schema, assembled into a message. */
async function asUseChatReads(sdk: typeof ai6, stream: ReturnType<typeof toUIMessageStream>): Promise<ai6.UIMessage> {
  const response = sdk.createUIMessageStreamResponse({ stream });
  if (response.body === null) throw new Error("The response has no body.");
  const chunks = sdk.parseJsonEventStream({ stream: response.body, schema: sdk.uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(parsed, controller) {
        if (!parsed.success) throw parsed.error;
        controller.enqueue(parsed.value);
      },
    }),
  );
  let last: ai6.UIMessage | undefined;
  for await (const message of sdk.readUIMessageStream({ stream: chunks, terminateOnError: true })) last = message;
  if (last === undefined) throw new Error("There was no message.");
  return last;
}

describe.each<[string, typeof ai6]>([
  ["6", ai6],
  ["7", ai7 as unknown as typeof ai6],
])("toUIMessageStream with ai %s", (_, sdk) => {
  it("becomes one message with texts, tools, reasoning, files and data", async () => {
    const stream = busyChat().runStream({ task: "go", outputTaskMessages: false });
    const { id, role, parts } = await asUseChatReads(sdk, toUIMessageStream(stream, { messageId: "m" }));
    expect([id, role]).toEqual(["m", "assistant"]);
    const texts = parts.flatMap((part) =>
      part.type === "text" ? [[part.providerMetadata?.["fenced"]?.["source"], part.text, part.state]] : [],
    );
    expect(texts).toContainEqual(["helper", "It is 2.", "done"]);
    expect(texts).toContainEqual(["coder", python("print(7)"), "done"]);
    expect(texts).toContainEqual(["painter", "Look:", "done"]);
    const tools = parts.filter((part) => part.type === "dynamic-tool");
    expect(tools).toMatchObject([
      { toolCallId: "c1", toolName: "add", input: { a: 1 }, state: "output-available", output: "2" },
      { toolCallId: "c2", state: "output-error", errorText: "zero" },
      { toolCallId: "c3", input: "not json", state: "output-error" },
    ]);
    expect(parts.find((part) => part.type === "reasoning")).toMatchObject({ text: "hm" });
    expect(parts.find((part) => part.type === "file")).toMatchObject({ mediaType: "image/png" });
    expect(parts.flatMap(({ type }) => (type.startsWith("data-") ? [type] : []))).toEqual([
      "data-CodeGenerationEvent",
      "data-CodeExecutionEvent",
      "data-result",
    ]);
  });

  it("reports an error", async () => {
    const { team, a } = counters(2);
    a.fail = new Error("secret path");
    const stream = toUIMessageStream(team.runStream({ task: "go" }), { onError: () => "ours" });
    await expect(asUseChatReads(sdk, stream)).rejects.toThrow("ours");
  });
});

describe("toUIMessageStream", () => {
  it("streams live output as transient data, and names the person a run waits for", async () => {
    const chunks = await collect(toUIMessageStream(busyChat().runStream({ task: "go" })));
    expect(chunks).toContainEqual({
      type: "data-CodeOutputEvent",
      data: expect.objectContaining({ text: "7\n", stream: "stdout" }),
      transient: true,
    });
    const person = new UserProxyAgent({ name: "person", inputFunc: () => undefined });
    expect((await collect(toUIMessageStream(person.runStream({ task: "go" })))).at(-2)).toMatchObject({
      type: "data-result",
      data: { waitingFor: [{ source: "person" }] },
    });
  });

  it("sends arguments that are nested too deep as text", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    async function* chat(): AsyncGenerator<ChatItem> {
      yield toolCallRequestEvent({ source: "a", content: [{ id: "c", name: "add", arguments: deep }] });
    }
    const chunks = await collect(toUIMessageStream(chat()));
    expect(chunks[1]).toMatchObject({ toolCallId: "c", input: deep });
    expect(JSON.stringify(chunks)).toContain(deep);
  });

  it("stops running code when it is cancelled during a read", async () => {
    const codeExecutor = new ScriptedExecutor(["hang"]);
    const running = new Promise<void>((resolve) => {
      codeExecutor.onRun = resolve;
    });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const reader = toUIMessageStream(runner.runStream({ task: python("while True: pass") })).getReader();
    const reading = (async () => {
      while (!(await reader.read()).done);
    })();
    await running;
    await reader.cancel();
    await reading;
    expect(codeExecutor.running).toBe(0);
  });

  it("does not read ahead", async () => {
    const { team, a } = counters(2);
    const reader = toUIMessageStream(team.runStream({ task: "go" })).getReader();
    await reader.read();
    await reader.read();
    expect(a.received).toEqual([]);
    await reader.cancel();
  });
});
