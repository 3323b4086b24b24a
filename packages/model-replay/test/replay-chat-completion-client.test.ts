import { execFileSync } from "node:child_process";
import { appendFile, readFile, truncate, writeFile } from "node:fs/promises";
import {
  FileNotFoundError,
  imageFromBytes,
  InvalidInputError,
  ModelClientError,
  type CreateResult,
  type ModelMessage,
} from "@fenced/core";
import { describe, expect, it } from "vitest";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "../src/index.ts";
import { answer, ask, collect, modelInfo, PreparedClient, temporaryFile } from "./support.ts";

/** A recording of these answers, each asked for by its number and streamed. */
async function recordOf(...answers: CreateResult[]): Promise<string> {
  const file = await temporaryFile();
  const client = new RecordingChatCompletionClient({ client: new PreparedClient(answers), file });
  for (const index of answers.keys()) await collect(client.createStream(ask(String(index + 1))));
  return file;
}

describe("a list of answers", () => {
  it("is replayed like a recording", async () => {
    const call = answer([{ id: "1", name: "t", arguments: "{}" }], { finishReason: "tool-calls" });
    const client = new ReplayChatCompletionClient({ answers: ["Hello there", call] });
    expect(await collect(client.createStream(ask("?")))).toEqual([
      "Hello there",
      expect.objectContaining({ content: "Hello there", finishReason: "stop" }),
    ]);
    expect(await client.create([])).toEqual(call);
    await expect(client.create(ask("and now?"))).rejects.toThrow(
      "The list of answers has 2 answers, but this is request 3.",
    );
    expect(new ReplayChatCompletionClient({ answers: [], modelInfo }).modelInfo).toEqual(modelInfo);
    expect(client.dumpComponent().config).toEqual({ answers: ["Hello there", call] });
  });

  it("cannot be combined with a file or strict", () => {
    expect(() => new ReplayChatCompletionClient({})).toThrow("needs either file or answers");
    expect(() => new ReplayChatCompletionClient({ file: "a", answers: [] })).toThrow("needs either file or answers");
    expect(() => new ReplayChatCompletionClient({ answers: ["a"], strict: true })).toThrow("strict");
  });
});

describe("a replay", () => {
  it("returns the answers in order, whatever is asked, with the recorded modelInfo", async () => {
    const calls = [{ id: "1", name: "t", arguments: "{}" }];
    const answers = [answer("Hello there"), answer(calls, { thought: "hm", finishReason: "tool-calls" }), answer("")];
    const client = new ReplayChatCompletionClient({ file: await recordOf(...answers) });
    expect(client.modelInfo).toEqual(modelInfo);
    expect(client.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
    expect(await collect(client.createStream(ask("something else")))).toEqual(["Hello ", "there", answers[0]]);
    expect(await client.create([])).toEqual(answers[1]);
    expect(await collect(client.createStream([]))).toEqual(["", answers[2]]);
    expect(client.usage).toEqual({ promptTokens: 9, completionTokens: 6 });
  });

  it("streams an answer that was not recorded as a stream as one chunk", async () => {
    const file = await temporaryFile();
    const calls = [{ id: "1", name: "t", arguments: "{}" }];
    const recording = new RecordingChatCompletionClient({
      client: new PreparedClient([answer("Hi you"), answer(calls)]),
      file,
    });
    await recording.create(ask("one"));
    await recording.create(ask("two"));
    const client = new ReplayChatCompletionClient({ file });
    expect(await collect(client.createStream(ask("one")))).toEqual(["Hi you", answer("Hi you")]);
    expect(await collect(client.createStream(ask("two")))).toEqual([answer(calls)]);
  });

  it("says which request is beyond the recording", async () => {
    const file = await recordOf(answer("a"));
    const client = new ReplayChatCompletionClient({ file });
    await client.create([]);
    for (const attempt of [client.create(ask("and now?")), collect(client.createStream(ask("and now?")))]) {
      await expect(attempt).rejects.toSatisfy(ModelClientError.isInstance);
      await expect(attempt).rejects.toThrow(
        `The recording ${file} has 1 answer, but this is request 2. It ends with the user message "and now?". Record the`,
      );
    }
    expect(client.usage).toEqual({ promptTokens: 3, completionTokens: 2 });
  });

  it("keeps images", async () => {
    const file = await temporaryFile();
    const messages: ModelMessage[] = [
      {
        role: "user",
        source: "anna",
        content: [{ type: "text", text: "What is it?" }, imageFromBytes(Uint8Array.of(1, 2), "image/png")],
      },
    ];
    await new RecordingChatCompletionClient({ client: new PreparedClient([answer("a dot")]), file }).create(messages);
    const client = new ReplayChatCompletionClient({ file, strict: true });
    expect(await client.create(messages)).toEqual(answer("a dot"));
  });

  it("waits chunkDelayMs before each chunk", async () => {
    const client = new ReplayChatCompletionClient({ file: await recordOf(answer("a b c")), chunkDelayMs: 40 });
    const start = performance.now();
    await collect(client.createStream([]));
    expect(performance.now() - start).toBeGreaterThan(100);
  });
});

describe("an abort", () => {
  const reason = new Error("the user pressed stop");

  it("before the call does not use up an answer", async () => {
    const client = new ReplayChatCompletionClient({ file: await recordOf(answer("a")) });
    const signal = AbortSignal.abort(reason);
    await expect(client.create([], { signal })).rejects.toBe(reason);
    await expect(collect(client.createStream([], { signal }))).rejects.toBe(reason);
    expect(await client.create([])).toEqual(answer("a"));
  });

  it("between chunks ends the stream at once", async () => {
    const client = new ReplayChatCompletionClient({ file: await recordOf(answer("a b c")), chunkDelayMs: 5 });
    const controller = new AbortController();
    const seen: unknown[] = [];
    const run = async (): Promise<void> => {
      for await (const item of client.createStream([], { signal: controller.signal })) {
        seen.push(item);
        if (seen.length === 2) controller.abort(reason);
      }
    };
    await expect(run()).rejects.toBe(reason);
    expect(seen).toEqual(["a ", "b "]);
  });

  it("during a pause ends the pause", async () => {
    const client = new ReplayChatCompletionClient({ file: await recordOf(answer("a")), chunkDelayMs: 60_000 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    await expect(collect(client.createStream([], { signal: controller.signal }))).rejects.toBe(reason);
  });
});

describe("a strict replay", () => {
  const tools = [{ name: "t", description: "", parameters: { type: "object" } }];
  const conversation: ModelMessage[] = [
    { role: "system", content: "Be brief." },
    { role: "user", content: `${"x".repeat(500)} one` },
  ];

  async function record(): Promise<string> {
    const file = await temporaryFile();
    const client = new RecordingChatCompletionClient({ client: new PreparedClient([answer("a")]), file });
    await client.create(conversation, { tools, jsonSchema: { type: "object" } });
    return file;
  }

  it("accepts the same request, whatever the order of its keys", async () => {
    const client = new ReplayChatCompletionClient({ file: await record(), strict: true });
    const same = conversation.map(({ content, role }) => ({ content, role }) as ModelMessage);
    const { signal } = new AbortController();
    expect(await client.create(same, { jsonSchema: { type: "object" }, tools, signal })).toEqual(answer("a"));
  });

  it.each<[string, ModelMessage[], object, string]>([
    [
      "another text",
      [...conversation.slice(0, 1), { role: "user", content: `${"x".repeat(500)} two` }],
      {},
      "message 2 is …x",
    ],
    ["a missing message", conversation.slice(0, 1), {}, "message 2 is missing, in the recording"],
    [
      "a new message",
      [...conversation, ...ask("more")],
      {},
      'message 3 is {"role":"user","content":"more"}, in the recording missing',
    ],
    ["other tools", conversation, { tools: [] }, "its tools are missing, in the recording [{"],
    ["another schema", conversation, { jsonSchema: { type: "array" } }, 'its JSON schema is {"type":"array"}'],
  ])("rejects %s and says where it differs", async (_, messages, options, words) => {
    const client = new ReplayChatCompletionClient({ file: await record(), strict: true });
    const attempt = client.create(messages, { tools, jsonSchema: { type: "object" }, ...options });
    await expect(attempt).rejects.toSatisfy(ModelClientError.isInstance);
    await expect(attempt).rejects.toThrow(/^Request 1 differs from the recording .*record\.jsonl: /);
    await expect(attempt).rejects.toThrow(words);
    expect(await client.create(conversation, { tools, jsonSchema: { type: "object" } })).toEqual(answer("a"));
  });

  it("shows what differs, even deep in a long message", async () => {
    const client = new ReplayChatCompletionClient({ file: await record(), strict: true });
    const messages = [...conversation.slice(0, 1), { role: "user" as const, content: `${"x".repeat(500)} two` }];
    await expect(client.create(messages, { tools })).rejects.toThrow(/x two"}, in the recording …x+ one"}/);
  });
});

describe("a file", () => {
  it("that is missing, empty or not a recording is rejected by the constructor", async () => {
    const file = await temporaryFile();
    expect(() => new ReplayChatCompletionClient({ file })).toThrow(FileNotFoundError);
    await writeFile(file, "");
    expect(() => new ReplayChatCompletionClient({ file })).toThrow(`The recording ${file} is empty`);
    await writeFile(file, "hello\n");
    expect(() => new ReplayChatCompletionClient({ file })).toThrow(
      `${file}:1 is not an entry of a recording: it is not JSON`,
    );
    await writeFile(file, '{"version":1}\n');
    expect(() => new ReplayChatCompletionClient({ file })).toThrow(InvalidInputError);
  });

  it("of a newer version is rejected with what to do", async () => {
    const file = await recordOf(answer("a"));
    await appendFile(file, '{"version":2}\n');
    expect(() => new ReplayChatCompletionClient({ file })).toThrow(
      `${file}:2 has version 2, but this package reads version 1. Update @fenced/model-replay`,
    );
  });

  it("that a crash cut is replayed up to the cut", async () => {
    const file = await recordOf(answer("a"), answer("b"));
    await writeFile(file, (await readFile(file, "utf8")).slice(0, -20));
    const client = new ReplayChatCompletionClient({ file });
    expect(await client.create([])).toEqual(answer("a"));
    await expect(client.create([])).rejects.toThrow("has 1 answer");
  });
});

it("rejects a file that is not a regular file, such as a FIFO", async () => {
  const file = await temporaryFile();
  execFileSync("mkfifo", [file]);
  expect(() => new ReplayChatCompletionClient({ file })).toThrow(`${file} is not a regular file`);
  expect(() => new ReplayChatCompletionClient({ file: "/dev/zero" })).toThrow("/dev/zero is not a regular file");
});

it("rejects a file that is too large", async () => {
  const file = await temporaryFile();
  await writeFile(file, "");
  await truncate(file, 2 ** 33);
  expect(() => new ReplayChatCompletionClient({ file })).toThrow(`${file} has 8589934592 bytes`);
});

it("rejects unknown options", async () => {
  const file = await temporaryFile();
  const make = (options: object) => (): unknown => Reflect.construct(ReplayChatCompletionClient, [options]);
  expect(make({ file, chunkDelay: 5 })).toThrow('"chunkDelay". Did you mean "chunkDelayMs", in milliseconds?');
  expect(make({ path: file })).toThrow('unknown option "path"');
});

it.each<[unknown, unknown, string]>([
  ["hello", {}, '"messages" is a string.'],
  [[{ role: "usr", content: "x" }], {}, '"messages[0].role" is "usr".'],
  [ask("one"), { tool: [] }, 'unknown option "tool". Did you mean "tools"?'],
  [ask("one"), { signal: "stop" }, "It must be an AbortSignal."],
])("a call rejects invalid arguments: %j, %j", async (messages, options, message) => {
  const file = await recordOf(answer("Hi"));
  const replay = new ReplayChatCompletionClient({ file });
  const live = new PreparedClient([answer("Hi")]);
  const recording = new RecordingChatCompletionClient({ client: live, file: `${file}.2` });
  const clients: readonly UntypedClient[] = [replay, recording];
  for (const client of clients) {
    const create = async (): Promise<unknown> => client.create(messages, options);
    await expect(create()).rejects.toThrow(InvalidInputError);
    await expect(create()).rejects.toThrow(message);
    const first = async (): Promise<unknown> => client.createStream(messages, options).next();
    await expect(first()).rejects.toThrow(message);
  }
  // No answer is used up.
  expect(await replay.create(ask("one"))).toEqual(answer("Hi"));
  expect(await live.create()).toEqual(answer("Hi"));
});

/** A client as JavaScript sees it. */
interface UntypedClient {
  create(...parameters: readonly unknown[]): Promise<unknown>;
  createStream(...parameters: readonly unknown[]): AsyncGenerator<unknown, void, void>;
}
