import {
  imageFromBytes,
  InvalidInputError,
  ModelClientError,
  type CreateResult,
  type ModelMessage,
} from "@fenced/core";
import { startOpenAIServer, type ScriptedAnswer } from "@fenced/test-support/openai-server";
import { describe, expect, it } from "vitest";
import { clientOf, collect, failureOf } from "./support.ts";

const question: ModelMessage[] = [{ role: "user", content: "What is a fence?" }];
const weatherTool = {
  name: "weather",
  description: "The weather in a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** Asks once without and once with streaming; both must give the same result. */
async function bothWays(
  answer: ScriptedAnswer,
  messages: ModelMessage[] = question,
  options: Parameters<ReturnType<typeof clientOf>["create"]>[1] = {},
): Promise<{ result: CreateResult; chunks: string[]; body: Record<string, unknown> }> {
  await using server = await startOpenAIServer([answer, answer]);
  const client = clientOf(server);
  const result = await client.create(messages, options);
  const { chunks, results } = await collect(client.createStream(messages, options));
  expect(results).toEqual([result]);
  const [whole, streamed] = server.requests.map((request) => ({ ...request.body }));
  expect(streamed).toEqual({ ...whole, stream: true, stream_options: { include_usage: true } });
  return { result, chunks, body: whole ?? {} };
}

describe("text", () => {
  it("is returned whole and in chunks", async () => {
    const { result, chunks, body } = await bothWays({ text: ["A fe", "nce ", "is 🐦."] });
    expect(result).toEqual({
      content: "A fence is 🐦.",
      usage: { promptTokens: 10, completionTokens: 5 },
      finishReason: "stop",
    });
    expect(chunks).toEqual(["A fe", "nce ", "is 🐦."]);
    expect(body["messages"]).toEqual([{ role: "user", content: "What is a fence?" }]);
  });

  it("survives a stream that is split anywhere, even inside characters", async () => {
    await using server = await startOpenAIServer([{ text: ["Zäune ", "🐦 und ", "مرحبا"], pieceBytes: 3 }]);
    const { chunks } = await collect(clientOf(server).createStream(question));
    expect(chunks).toEqual(["Zäune ", "🐦 und ", "مرحبا"]);
  });

  it("may be empty", async () => {
    const { result, chunks } = await bothWays({ text: "" });
    expect(result.content).toBe("");
    expect(chunks).toEqual([]);
  });

  it.each([
    ["length", "length"],
    ["content_filter", "content-filter"],
    ["something_new", "unknown"],
  ])("has a finish reason: %s becomes %s", async (said, expected) => {
    const { result } = await bothWays({ text: "A", finishReason: said });
    expect(result.finishReason).toBe(expected);
  });

  it("arrives chunk by chunk, not all at the end", async () => {
    await using server = await startOpenAIServer([{ text: Array<string>(100).fill("word "), chunkDelayMs: 100 }]);
    for await (const chunk of clientOf(server).createStream(question)) {
      expect(chunk).toBe("word ");
      break;
    }
    // The server was still sending.
    expect(await server.requests[0]?.aborted).toBe(true);
  });
});

describe("messages", () => {
  it("are sent with their roles, system messages anywhere", async () => {
    const { body } = await bothWays({ text: "ok" }, [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi", source: "anna" },
      { role: "assistant", content: "Hello", thought: "She greets me." },
      { role: "system", content: "Be even briefer." },
      { role: "user", content: "Well?" },
    ]);
    expect(body["messages"]).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello" },
      { role: "system", content: "Be even briefer." },
      { role: "user", content: "Well?" },
    ]);
  });

  it("say who speaks if there are several, and never are empty or end with the model", async () => {
    const { body } = await bothWays({ text: "ok" }, [
      { role: "system", content: "" },
      { role: "user", content: "Where do they live?", source: "user" },
      { role: "user", content: "In Oslo.", source: "adam" },
      { role: "user", content: "", source: "sam" },
      { role: "assistant", content: "", source: "rob" },
      { role: "user", content: "I told myself to wait.", source: "rob" },
      { role: "user", content: [{ type: "text", text: " " }] },
      { role: "assistant", content: [], thought: " " },
      { role: "tool", content: [] },
      { role: "assistant", content: "Adam lives in Oslo.", source: "rob" },
    ]);
    expect(body["messages"]).toEqual([
      { role: "user", content: "Where do they live?" },
      { role: "user", content: "adam said:\nIn Oslo." },
      { role: "user", content: "sam said nothing." },
      { role: "user", content: "I told myself to wait." },
      { role: "user", content: "(nothing)" },
      { role: "assistant", content: "Adam lives in Oslo." },
      { role: "user", content: "Continue." },
    ]);
  });

  it("carry reasoning next to tool calls back as reasoning, even from another process", async () => {
    const toolCalls = [{ id: "c1", name: "add", arguments: "{}" }];
    await using server = await startOpenAIServer([{ reasoning: "Hm.", text: "I add.", toolCalls }, { text: "ok" }]);
    const {
      usage: _,
      finishReason: __,
      ...answer
    } = await clientOf(server).create([{ role: "user", content: "1+2?" }]);
    expect(answer).toMatchObject({ thought: "Hm.\n\nI add.", reasoning: "Hm." });
    await clientOf(server).create([
      { role: "user", content: "1+2?" },
      { role: "assistant", ...answer },
      { role: "tool", content: [{ callId: "c1", name: "add", content: "", isError: false }] },
    ]);
    expect(server.requests[1]?.body.messages.slice(1)).toMatchObject([
      { content: "I add.", reasoning_content: "Hm." },
      { content: "(nothing)" },
    ]);
  });

  it("carry images", async () => {
    await using server = await startOpenAIServer([{ text: "a dot" }]);
    const image = imageFromBytes(Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10), "image/png");
    await clientOf(server, { modelInfo: { vision: true } }).create([
      { role: "user", content: [{ type: "text", text: "What is it?" }, image] },
    ]);
    expect(server.requests[0]?.body.messages[0]?.content).toEqual([
      { type: "text", text: "What is it?" },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    ]);
  });

  it("are rejected before anything is sent if the model cannot handle them", async () => {
    await using server = await startOpenAIServer([]);
    const client = clientOf(server, { modelInfo: { vision: false, functionCalling: false, structuredOutput: false } });
    const image = imageFromBytes(Uint8Array.of(1), "image/png");
    for (const [messages, options, word] of [
      [[{ role: "user", content: [image] }], {}, "image"],
      [question, { tools: [weatherTool] }, "tools"],
      [question, { jsonSchema: { type: "object" } }, "JSON schema"],
    ] satisfies [ModelMessage[], object, string][]) {
      const error = await failureOf(client.create(messages, options));
      expect(InvalidInputError.isInstance(error)).toBe(true);
      expect(error.message).toContain(word);
    }
    expect(server.requests).toEqual([]);
  });
});

describe("reasoning", () => {
  it("becomes the thought of a text, not a chunk", async () => {
    const { result, chunks } = await bothWays({ reasoning: ["Let me ", "see."], text: "42" });
    expect(result).toMatchObject({ content: "42", thought: "Let me see." });
    expect(chunks).toEqual(["42"]);
  });
});

describe("tools", () => {
  const calls = [
    { id: "call_1", name: "weather", arguments: '{"city": "Seattle", "station": 12345678901234567890}' },
    { id: "call_2", name: "weather", arguments: '{"city":' },
    { id: "call_3", name: "unknown_tool", arguments: '{"a":1}' },
  ];

  it("are offered with their schema, and calls are returned as the model wrote them", async () => {
    const { result, body } = await bothWays({ toolCalls: calls }, question, { tools: [weatherTool] });
    expect(result.content).toEqual(calls);
    expect(result.finishReason).toBe("tool-calls");
    expect(result.thought).toBeUndefined();
    expect(body["tools"]).toEqual([{ type: "function", function: weatherTool }]);
  });

  it("turn the text next to calls into a thought, after the reasoning", async () => {
    const answer = { reasoning: "Hm.", text: "I look it up.", toolCalls: calls.slice(0, 1) };
    const { result, chunks } = await bothWays(answer, question, { tools: [weatherTool] });
    expect(result).toMatchObject({ content: calls.slice(0, 1), thought: "Hm.\n\nI look it up." });
    expect(chunks).toEqual(["I look it up."]);
  });

  it("treat empty arguments of a call as an empty object", async () => {
    const call = { id: "c", name: "weather", arguments: "" };
    const { result } = await bothWays({ toolCalls: [call] }, question, { tools: [weatherTool] });
    expect(result.content).toEqual([{ ...call, arguments: "{}" }]);
  });

  it("send results back with the model's text and reasoning before the calls", async () => {
    await using server = await startOpenAIServer([
      { reasoning: "Hm.", text: "I look it up.", toolCalls: calls },
      { text: "Rain." },
    ]);
    const client = clientOf(server);
    const first = await client.create(question, { tools: [weatherTool] });
    await client.create([
      ...question,
      { role: "assistant", ...first },
      {
        role: "tool",
        content: [
          { callId: "call_1", name: "weather", content: "rain", isError: false },
          { callId: "call_2", name: "weather", content: "arguments are not JSON", isError: true },
          { callId: "call_3", name: "unknown_tool", content: "no such tool", isError: true },
        ],
      },
    ]);
    const [, assistant, ...results] = server.requests[1]?.body.messages ?? [];
    expect(assistant).toMatchObject({ content: "I look it up.", reasoning_content: "Hm." });
    expect(assistant?.tool_calls?.map((call) => [call.id, JSON.parse(call.function.arguments) as unknown])).toEqual([
      ["call_1", { city: "Seattle", station: Number("12345678901234567890") }],
      ["call_2", { malformed: '{"city":' }],
      ["call_3", { a: 1 }],
    ]);
    expect(results.map((result) => [result.tool_call_id, result.content])).toEqual([
      ["call_1", "rain"],
      ["call_2", "arguments are not JSON"],
      ["call_3", "no such tool"],
    ]);
  });

  it("send back the calls of another client with the thought as text", async () => {
    await using server = await startOpenAIServer([{ text: "Rain." }]);
    await clientOf(server).create([
      ...question,
      { role: "assistant", content: calls.slice(0, 1), thought: "I look it up." },
      { role: "tool", content: [{ callId: "call_1", name: "weather", content: "rain", isError: false }] },
    ]);
    expect(server.requests[0]?.body.messages[1]).toMatchObject({
      content: "I look it up.",
      tool_calls: [{ id: "call_1", function: { name: "weather" } }],
    });
  });
});

describe("structured output", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer" } },
    required: ["n"],
    additionalProperties: false,
  };

  it("is requested with the schema and returned as text", async () => {
    const { result, body } = await bothWays({ text: ['{"n":', "1}"] }, question, { jsonSchema: schema });
    expect(result.content).toBe('{"n":1}');
    expect(body["response_format"]).toMatchObject({ type: "json_schema", json_schema: { schema } });
  });

  it("throws if the answer is something else, and still counts its usage", async () => {
    const answer = { text: "Sure! Here you go:" };
    await using server = await startOpenAIServer([answer, answer]);
    const client = clientOf(server);
    const failures = [
      await failureOf(client.create(question, { jsonSchema: schema })),
      await failureOf(collect(client.createStream(question, { jsonSchema: schema }))),
    ];
    for (const error of failures) {
      expect(ModelClientError.isInstance(error)).toBe(true);
      expect(error.message).toContain('sent something else: "Sure! Here you go:"');
    }
    expect(client.usage.promptTokens).toBe(20);
  });

  it("says what to do if the answer was cut", async () => {
    await using server = await startOpenAIServer([{ text: '{"n":', finishReason: "length" }]);
    const error = await failureOf(clientOf(server).create(question, { jsonSchema: schema }));
    expect(error.message).toContain("Raise maxOutputTokens.");
  });
});

describe("settings", () => {
  it("are sent with the request", async () => {
    await using server = await startOpenAIServer([{ text: "ok" }]);
    await clientOf(server, { temperature: 0, maxOutputTokens: 50, seed: 7 }).create(question);
    expect(server.requests[0]?.body).toMatchObject({ temperature: 0, max_tokens: 50, seed: 7 });
  });
});

describe("usage", () => {
  it("adds up over the calls, and is zero if the service does not report it", async () => {
    await using server = await startOpenAIServer([
      { text: "a", usage: { prompt_tokens: 100, completion_tokens: 20 } },
      { text: "b", usage: null },
      { text: "c", usage: { prompt_tokens: 1, completion_tokens: 2 } },
      { text: "d", usage: null },
    ]);
    const client = clientOf(server);
    expect(client.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
    await client.create(question);
    expect((await client.create(question)).usage).toEqual({ promptTokens: 0, completionTokens: 0 });
    await collect(client.createStream(question));
    const { results } = await collect(client.createStream(question));
    expect(results[0]?.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
    expect(client.usage).toEqual({ promptTokens: 101, completionTokens: 22 });
  });
});
