import type { ModelMessage } from "@fenced/core";
import { startOpenAIServer, type ScriptedAnswer } from "@fenced/test-support/openai-server";
import { describe, expect, it } from "vitest";
import { clientOf, collect, failureOf } from "./support.ts";

const question: ModelMessage[] = [{ role: "user", content: "What is a fence?" }];
const reason = new Error("the user pressed stop");

const slow = { delayMs: Infinity } satisfies ScriptedAnswer;
const slowChunks = { text: ["a", "b", "c"], chunkDelayMs: 1000 } satisfies ScriptedAnswer;

describe("an abort", () => {
  it("before the call sends nothing", async () => {
    await using server = await startOpenAIServer([]);
    const client = clientOf(server);
    const signal = AbortSignal.abort(reason);
    await expect(client.create(question, { signal })).rejects.toBe(reason);
    await expect(collect(client.createStream(question, { signal }))).rejects.toBe(reason);
    expect(server.requests).toEqual([]);
  });

  it.each(["create", "createStream"] as const)("while %s waits ends the request", async (method) => {
    await using server = await startOpenAIServer([slow]);
    const controller = new AbortController();
    const client = clientOf(server);
    const pending =
      method === "create"
        ? client.create(question, { signal: controller.signal })
        : collect(client.createStream(question, { signal: controller.signal }));
    const outcome = failureOf(pending);
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort(reason);
    expect(await outcome).toBe(reason);
    expect(await server.requests[0]?.aborted).toBe(true);
    expect(client.usage.promptTokens).toBe(0);
  });

  it("between two chunks ends the stream with the reason", async () => {
    await using server = await startOpenAIServer([slowChunks]);
    const controller = new AbortController();
    const seen: unknown[] = [];
    const run = async (): Promise<void> => {
      for await (const item of clientOf(server).createStream(question, { signal: controller.signal })) {
        seen.push(item);
        controller.abort(reason);
      }
    };
    await expect(run()).rejects.toBe(reason);
    expect(seen).toEqual(["a"]);
    expect(await server.requests[0]?.aborted).toBe(true);
  });

  it("during the wait before a retry ends the wait", async () => {
    await using server = await startOpenAIServer([{ status: 503, headers: { "retry-after": "30" } }]);
    const controller = new AbortController();
    const outcome = failureOf(clientOf(server, { maxRetries: 2 }).create(question, { signal: controller.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    controller.abort(reason);
    expect(await outcome).toBe(reason);
    expect(server.requests.length).toBe(1);
  });

  it("after the answer changes nothing", async () => {
    await using server = await startOpenAIServer([{ text: "a" }]);
    const controller = new AbortController();
    const result = await clientOf(server).create(question, { signal: controller.signal });
    controller.abort(reason);
    expect(result.content).toBe("a");
  });
});

describe("leaving the loop", () => {
  it("ends the request", async () => {
    await using server = await startOpenAIServer([slowChunks]);
    for await (const chunk of clientOf(server).createStream(question)) {
      expect(chunk).toBe("a");
      break;
    }
    expect(await server.requests[0]?.aborted).toBe(true);
  });
});
