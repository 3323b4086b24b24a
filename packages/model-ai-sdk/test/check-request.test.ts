import { InvalidInputError, ModelClientError, type ModelMessage } from "@fenced/core";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { describe, expect, it } from "vitest";
import { clientOf, collect, failureOf } from "./support.ts";

const question: ModelMessage[] = [{ role: "user", content: "What is a fence?" }];

describe("an invalid argument from JavaScript", () => {
  it.each<[unknown, unknown, string]>([
    ["hello", {}, '"messages" is a string.'],
    [[{ role: "usr", content: "x" }], {}, '"messages[0].role" is "usr".'],
    [[{ role: "user", content: "x", name: "a" }], {}, 'unknown option "messages[0].name".'],
    [question, { tool: [] }, 'unknown option "tool". Did you mean "tools"?'],
    [question, { signal: "stop" }, "It must be an AbortSignal."],
    [question, { jsonSchema: "object" }, "It must be a JSON Schema object."],
  ])("is rejected before anything is sent: %j, %j", async (messages, options, message) => {
    await using server = await startOpenAIServer([]);
    const client: UntypedClient = clientOf(server);
    const create = async (): Promise<unknown> => client.create(messages, options);
    await expect(create()).rejects.toThrow(InvalidInputError);
    await expect(create()).rejects.toThrow(message);
    const first = async (): Promise<unknown> => client.createStream(messages, options).next();
    await expect(first()).rejects.toThrow(message);
    expect(server.requests).toEqual([]);
  });
});

describe("invalid messages", () => {
  it.each<[string, ModelMessage[], string]>([
    ["an image with a relative URL", [{ role: "user", content: [{ type: "image", url: "plot.png" }] }], '"plot.png"'],
    [
      "tool calls without results",
      [{ role: "assistant", content: [{ id: "call_1", name: "t", arguments: "{}" }] }, ...question],
      "call_1",
    ],
  ])("are rejected: %s", async (_, messages, word) => {
    await using server = await startOpenAIServer([]);
    const client = clientOf(server, { modelInfo: { vision: true } });
    for (const attempt of [client.create(messages), collect(client.createStream(messages))]) {
      const error = await failureOf(attempt);
      expect(error).toSatisfy(InvalidInputError.isInstance);
      expect(error.message).toContain(word);
    }
    expect(server.requests).toEqual([]);
  });

  it("are reported if an image cannot be fetched", async () => {
    await using server = await startOpenAIServer([]);
    const image = { type: "image" as const, url: "https://fenced.invalid/plot.png" };
    const client = clientOf(server, { modelInfo: { vision: true } });
    const error = await failureOf(client.create([{ role: "user", content: [image] }]));
    expect(error).toSatisfy(ModelClientError.isInstance);
    expect(error.message).toContain("one could not be fetched");
  });
});

/** A client as JavaScript sees it. */
interface UntypedClient {
  create(...parameters: readonly unknown[]): Promise<unknown>;
  createStream(...parameters: readonly unknown[]): AsyncGenerator<unknown, void, void>;
}
