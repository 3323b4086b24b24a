import { inspect } from "node:util";
import { ModelClientError, type ModelMessage } from "@fenced/core";
import { startOpenAIServer, type ScriptedAnswer } from "@fenced/test-support/openai-server";
import { describe, expect, it } from "vitest";
import { apiKey, clientOf, collect, failureOf } from "./support.ts";

const question: ModelMessage[] = [{ role: "user", content: "What is a fence?" }];

/** The errors of a call without and of one with streaming. */
async function failures(answer: ScriptedAnswer): Promise<Error[]> {
  await using server = await startOpenAIServer([answer, answer]);
  const client = clientOf(server);
  return [await failureOf(client.create(question)), await failureOf(collect(client.createStream(question)))];
}

function expectModelError(error: Error, ...words: string[]): void {
  expect(error).toSatisfy(ModelClientError.isInstance);
  for (const word of words) expect(error.message).toContain(word);
  expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(apiKey);
}

describe("a failed call", () => {
  it.each<[string, ScriptedAnswer, string[]]>([
    [
      "a wrong key",
      { status: 401, error: `Incorrect API key provided: ${apiKey}` },
      ["refused the API key", "Check that the key"],
    ],
    ["a key without permission", { status: 403, error: "no access" }, ["refused the API key (HTTP 403)"]],
    [
      "an unknown model",
      { status: 404, error: "no such model" },
      ["is unknown", "no such model", "Check the model's id"],
    ],
    ["a rate limit", { status: 429, error: "slow down" }, ["over its rate limit", "slow down", "Wait and try again"]],
    [
      "a conversation that is too long",
      { status: 400, error: "This model's maximum context length is 8192 tokens" },
      ["cannot handle a conversation of this length", "Shorten the conversation"],
    ],
    [
      "a setting that the model does not support",
      { status: 400, error: "temperature is fixed" },
      ["temperature is fixed"],
    ],
    ["a broken service", { status: 500, error: "oops" }, ["failed on the service's side", "oops", "Try again later."]],
  ])("because of %s says what to do", async (_, answer, words) => {
    const errors = await failures(answer);
    expect(errors).toHaveLength(2);
    for (const error of errors) expectModelError(error, ...words);
  });

  it("with an answer outside the protocol says so", async () => {
    const [whole, streamed] = await failures({ body: "<html>It works!</html>" });
    expect(whole?.message).toMatch(/cannot be understood/);
    expect(streamed?.message).toMatch(/cannot be understood|broke off/);
    const [noChoices] = await failures({ body: JSON.stringify({ choices: [] }) });
    expect(noChoices?.message).toContain("cannot be understood");
  });

  it("to an unreachable service says where it looked", async () => {
    const server = await startOpenAIServer([]);
    await server[Symbol.asyncDispose]();
    const error = await failureOf(clientOf({ baseURL: server.baseURL }).create(question));
    expect(error.cause).toBeInstanceOf(Error);
    expectModelError(error, `cannot be reached at ${server.baseURL}/chat/completions`, "Check the base URL");
  });

  it("whose connection breaks during the answer is not called a refusal", async () => {
    const errors = await failures({ text: ["a", "b"], dropAfterChunks: 1, chunkDelayMs: 250 });
    expect(errors).toHaveLength(2);
    for (const error of errors) {
      expectModelError(error, "broke off its answer", "Try again");
    }
  });

  it("in the middle of a stream is thrown after the chunks so far", async () => {
    for (const answer of [
      { text: ["a", "b", "c"], dropAfterChunks: 3, chunkDelayMs: 250 },
      { text: ["a", "b", "c"], errorAfterChunks: 3, error: `overloaded ${apiKey}` },
      { text: ["a", "b"], finishReason: null, usage: null },
    ] satisfies ScriptedAnswer[]) {
      await using server = await startOpenAIServer([answer]);
      const chunks: unknown[] = [];
      const run = async (): Promise<void> => {
        for await (const item of clientOf(server).createStream(question)) chunks.push(item);
      };
      expectModelError(await failureOf(run()));
      expect(chunks).toEqual(["a", "b"]);
    }
  });

  it("is retried up to maxRetries times", async () => {
    const busy = { status: 429, headers: { "retry-after-ms": "1" } } satisfies ScriptedAnswer;
    await using server = await startOpenAIServer([busy, busy, { text: "at last" }]);
    const result = await clientOf(server, { maxRetries: 2 }).create(question);
    expect(result.content).toBe("at last");

    await using other = await startOpenAIServer([busy, busy, { text: "too late" }]);
    const error = await failureOf(clientOf(other, { maxRetries: 1 }).create(question));
    expectModelError(error, "rate limit");
    expect(other.requests.length).toBe(2);
  });

  it("leaves the client usable", async () => {
    await using server = await startOpenAIServer([{ status: 500 }, { text: "ok" }]);
    const client = clientOf(server);
    await failureOf(client.create(question));
    expect((await client.create(question)).content).toBe("ok");
  });
});
