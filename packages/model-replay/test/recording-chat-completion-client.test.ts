import { spawnSync } from "node:child_process";
import { appendFile, mkdir, readFile, rmdir, stat, writeFile } from "node:fs/promises";
import { ModelClientError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "../src/index.ts";
import { answer, ask, collect, modelInfo, PreparedClient, temporaryFile } from "./support.ts";

async function lines(file: string): Promise<unknown[]> {
  const text = await readFile(file, "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

describe("a recording", () => {
  it("has one line per request, with its answer and its chunks", async () => {
    const file = await temporaryFile("folder/made/record.jsonl");
    const client = new RecordingChatCompletionClient({
      client: new PreparedClient([answer("a\nb", { thought: "hm" }), answer("Hello there")]),
      file,
    });
    const tools = [{ name: "t", description: "", parameters: { type: "object" } }];
    expect(await client.create(ask("one"), { tools, jsonSchema: { type: "object" } })).toEqual(
      answer("a\nb", { thought: "hm" }),
    );
    expect(await collect(client.createStream(ask("two"), { tools: [] }))).toEqual([
      "Hello ",
      "there",
      answer("Hello there"),
    ]);
    expect(await lines(file)).toEqual([
      {
        version: 1,
        modelInfo,
        request: { messages: ask("one"), tools, jsonSchema: { type: "object" } },
        result: answer("a\nb", { thought: "hm" }),
      },
      {
        version: 1,
        modelInfo,
        request: { messages: ask("two") },
        chunks: ["Hello ", "there"],
        result: answer("Hello there"),
      },
    ]);
  });

  it("contains only the fields of the contracts, readable only by its owner", async () => {
    const file = await temporaryFile();
    await writeFile(file, "old", { mode: 0o644 });
    const secret = { headers: { authorization: "Bearer secret-text" } };
    const usage = Object.assign({ promptTokens: 1, completionTokens: 1 }, { raw: secret });
    const inner = new PreparedClient([Object.assign(answer("a", { usage }), secret)]);
    Object.assign(inner, { modelInfo: { ...modelInfo, ...secret } });
    const client = new RecordingChatCompletionClient({ client: inner, file });
    expect(await client.create(ask("one"))).toMatchObject(secret);
    expect(await readFile(file, "utf8")).not.toContain("secret-text");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("rejects an unknown option, and a file that is a FIFO", async () => {
    const file = await temporaryFile();
    const inner = new PreparedClient([answer("a")]);
    const misspelt = Object.assign({ client: inner, file }, { apend: true });
    expect(() => new RecordingChatCompletionClient(misspelt)).toThrow('"apend". Did you mean "append"?');
    spawnSync("mkfifo", [file]);
    const client = new RecordingChatCompletionClient({ client: inner, file });
    await expect(client.create(ask("one"))).rejects.toThrow("Check that it is a file that you can write");
  });

  it("passes on the client's modelInfo and usage", async () => {
    const inner = new PreparedClient([]);
    const client = new RecordingChatCompletionClient({ client: inner, file: await temporaryFile() });
    expect(client.modelInfo).toBe(inner.modelInfo);
    expect(client.usage).toBe(inner.usage);
  });

  it("contains the answer before the caller gets it", async () => {
    const file = await temporaryFile();
    const client = new RecordingChatCompletionClient({ client: new PreparedClient([answer("Hello there")]), file });
    for await (const item of client.createStream(ask("one"))) {
      if (typeof item !== "string") break;
    }
    expect(await lines(file)).toHaveLength(1);
  });

  it("keeps its lines when the process is killed", async () => {
    const file = await temporaryFile();
    const program = `
      import { RecordingChatCompletionClient } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)};
      const answers = { modelInfo: ${JSON.stringify(modelInfo)}, create: async () => (${JSON.stringify(answer("kept"))}) };
      const client = new RecordingChatCompletionClient({ client: answers, file: ${JSON.stringify(file)} });
      await client.create(${JSON.stringify(ask("one"))});
      process.kill(process.pid, "SIGKILL");
    `;
    const child = spawnSync("tsx", ["--conditions=@fenced/source", "--input-type=module", "-e", program], {
      encoding: "utf8",
    });
    expect(child.stderr).toBe("");
    expect(child.signal ?? child.status).not.toBe(0);
    expect(await lines(file)).toHaveLength(1);
  });

  it("omits calls that failed or were left early", async () => {
    const file = await temporaryFile();
    const failure = new Error("it failed");
    const client = new RecordingChatCompletionClient({
      client: new PreparedClient([failure, failure, answer("Hello there"), answer("kept")]),
      file,
    });
    await expect(client.create(ask("one"))).rejects.toBe(failure);
    await expect(collect(client.createStream(ask("two")))).rejects.toBe(failure);
    for await (const _ of client.createStream(ask("three"))) break;
    await client.create(ask("four"));
    expect(await lines(file)).toMatchObject([{ request: { messages: ask("four") } }]);
  });

  it("replaces an older one with its first answer, not before", async () => {
    const file = await temporaryFile();
    await writeFile(file, "an older record\n");
    const client = new RecordingChatCompletionClient({
      client: new PreparedClient([new Error("it failed"), answer("a"), answer("b")]),
      file,
    });
    await expect(client.create(ask("one"))).rejects.toThrow("it failed");
    expect(await readFile(file, "utf8")).toBe("an older record\n");
    await client.create(ask("two"));
    await client.create(ask("three"));
    expect(await lines(file)).toHaveLength(2);
  });

  it("appends to an existing one if requested, and drops a line that a crash cut", async () => {
    const file = await temporaryFile();
    await new RecordingChatCompletionClient({ client: new PreparedClient([answer("Zäune")]), file }).create(ask("ü"));
    await appendFile(file, '{"version":1,"modelIn');
    const client = new RecordingChatCompletionClient({ client: new PreparedClient([answer("b")]), file, append: true });
    await client.create(ask("two"));
    expect(await lines(file)).toMatchObject([{ result: { content: "Zäune" } }, { result: { content: "b" } }]);
  });

  it("is created with append if there is none", async () => {
    const file = await temporaryFile();
    await new RecordingChatCompletionClient({ client: new PreparedClient([answer("a")]), file, append: true }).create(
      ask("one"),
    );
    expect(await lines(file)).toHaveLength(1);
  });

  it("takes parallel calls without mixing their lines", async () => {
    const file = await temporaryFile();
    const long = "x".repeat(100_000);
    const client = new RecordingChatCompletionClient({
      client: new PreparedClient(Array.from({ length: 20 }, () => answer(long))),
      file,
    });
    await Promise.all(Array.from({ length: 20 }, (_, index) => client.create(ask(String(index)))));
    expect(await lines(file)).toHaveLength(20);
  });

  it("throws if it cannot be written, and continues when it can", async () => {
    const file = await temporaryFile();
    await mkdir(file);
    const client = new RecordingChatCompletionClient({ client: new PreparedClient([answer("a"), answer("b")]), file });
    await expect(client.create(ask("one"))).rejects.toSatisfy(ModelClientError.isInstance);
    await rmdir(file);
    await client.create(ask("two"));
    expect(await lines(file)).toMatchObject([{ result: { content: "b" } }]);
  });

  it("omits fields outside the contracts, and can be replayed strictly", async () => {
    const file = await temporaryFile();
    const messages = [...ask("one"), { role: "assistant" as const, ...answer("two") }];
    await new RecordingChatCompletionClient({ client: new PreparedClient([answer("a")]), file }).create(messages);
    expect(await lines(file)).toMatchObject([
      { request: { messages: [{ role: "user" }, { role: "assistant", content: "two" }] } },
    ]);
    expect(await readFile(file, "utf8")).not.toContain('"content":"two","usage"');
    const replay = new ReplayChatCompletionClient({ file, strict: true });
    expect(await replay.create(messages)).toEqual(answer("a"));
  });
});
