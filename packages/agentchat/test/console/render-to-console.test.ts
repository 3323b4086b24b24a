import { Writable } from "node:stream";
import { InvalidInputError } from "@fenced/core";
import { slow } from "@fenced/test-support";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  AssistantAgent,
  CodeExecutorAgent,
  renderToConsole,
  type RenderToConsoleOptions,
  RoundRobinGroupChat,
  textMessage,
} from "../../src/index.ts";
import { python } from "../support/python.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";

class Screen extends Writable {
  text = "";
  writes = 0;

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString("utf8");
    this.writes++;
    setImmediate(done);
  }
}

async function shown(
  stream: Parameters<typeof renderToConsole>[0],
  options: RenderToConsoleOptions = {},
): Promise<string> {
  const output = new Screen();
  await renderToConsole(stream, { output, colors: false, summary: false, ...options });
  return output.text;
}

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("renderToConsole", () => {
  it("shows each message under its source and returns the result", async () => {
    const output = new Screen();
    const agent = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel(["hi\nthere"]) });
    const result = await renderToConsole(agent.runStream({ task: "hello" }), { output, colors: false });
    expect(result.messages).toHaveLength(2);
    expect(output.text).toMatch(
      new RegExp(
        "^---------- user ----------\nhello\n---------- helper ----------\nhi\nthere\n" +
          "---------- Summary ----------\nMessages: 2\nTokens: +10 in, 5 out\nTime: +\\d+\\.\\d s\n$",
      ),
    );
  });

  it("says why a team stopped, and counts events", async () => {
    const modelClient = new ScriptedModel([python("x"), "Seven."]);
    const agent = new CodeExecutorAgent({ name: "analyst", modelClient, codeExecutor: new ScriptedExecutor() });
    const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
    const text = await shown(team.runStream({ task: "go" }), { summary: true });
    expect(text).toContain("Messages: 2 and 2 events\nTokens:   20 in, 10 out\n");
    expect(text).toMatch(/Stopped: {2}The limit of 1 turns is reached\.\n$/);
  });

  it("shows streamed text once, as it arrives", async () => {
    const output = new Screen();
    const modelClient = new ScriptedModel(["one two three"]);
    const agent = new AssistantAgent({ name: "helper", modelClient, modelClientStream: true });
    await renderToConsole(agent.runStream({ task: "hello" }), { output, colors: false, summary: false });
    expect(output.text).toBe("---------- user ----------\nhello\n---------- helper ----------\none two three\n");
    expect(output.writes).toBeGreaterThan(5);
  });

  it("shows a message of many empty lines in time that grows with their number alone", async () => {
    const content = `${"\n".repeat(1_000_000)}end`;
    const agent = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel([content]) });
    expect(await shown(agent.runStream({ task: "hello" }))).toMatch(/\n{1000000}end\n$/);
  });

  it("shows a megabyte streamed as one line", { ...slow, timeout: 120_000 }, async () => {
    const modelClient = new ScriptedModel([]);
    modelClient.createStream = async function* createStream() {
      for (let piece = 0; piece < 50_000; piece++) yield "abcd".repeat(5);
      yield { content: "", usage: { promptTokens: 0, completionTokens: 0 }, finishReason: "stop" as const };
    };
    const output = new Screen();
    const agent = new AssistantAgent({ name: "h", modelClient, modelClientStream: true });
    await renderToConsole(agent.onMessagesStream([]), { output, colors: true, summary: false });
    expect(output.text).toContain("abcd".repeat(1000));
  });

  it("shows live output once, without control sequences", async () => {
    const live = ["one\n\u001B]0;owned\u0007", "\u001B[2Jtwo\n"];
    const codeExecutor = new ScriptedExecutor([codeResult({ output: live.join("") })]);
    codeExecutor.live = live;
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const stream = runner.onMessagesStream([textMessage({ source: "user", content: python("x") })]);
    expect(await shown(stream)).toBe(
      "---------- runner (output) ----------\none\ntwo\n---------- runner (exit code 0) ----------\n",
    );
  });

  it("reports a failure below live output without repeating the output", async () => {
    const codeExecutor = new ScriptedExecutor([codeResult({ exitCode: 3, output: "one" })]);
    codeExecutor.live = ["one"];
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const stream = runner.onMessagesStream([textMessage({ source: "user", content: python("x") })]);
    expect(await shown(stream)).toBe(
      "---------- runner (output) ----------\none\n---------- runner (exit code 3) ----------\n" +
        "The code failed with exit code 3. Its output is above.\n",
    );
  });

  it("shows a streamed answer and the code in it once, then the output", async () => {
    const modelClient = new ScriptedModel([`Try:\n${python("x")}`, "Seven."]);
    const codeExecutor = new ScriptedExecutor([codeResult({ output: "7\n" })]);
    const agent = new CodeExecutorAgent({ name: "analyst", modelClient, codeExecutor, modelClientStream: true });
    expect(await shown(agent.onMessagesStream([textMessage({ source: "user", content: "?" })]))).toBe(
      "---------- analyst ----------\nTry:\n```python\nx\n```\n---------- analyst (exit code 0) ----------\n7\n" +
        "---------- analyst ----------\nSeven.\n",
    );
  });

  it("appends the files and images of an answer to its streamed text", async () => {
    const displays = [{ data: { "image/png": new Uint8Array([1]) }, files: ["/work/plot.png"] }];
    const agent = new CodeExecutorAgent({
      name: "analyst",
      modelClient: new ScriptedModel([python("plot()"), "Nice."], { vision: true }),
      codeExecutor: new ScriptedExecutor([codeResult({ output: "plotted\n", displays })]),
      modelClientStream: true,
    });
    expect(await shown(agent.onMessagesStream([]))).toBe(
      "---------- analyst ----------\n```python\nplot()\n```\n" +
        "---------- analyst (exit code 0) ----------\nplotted\n" +
        "---------- analyst ----------\nNice.\n\nSaved files:\nplot.png\n[image: /work/plot.png]\n",
    );
  });

  it("shows thoughts, tool calls and results", async () => {
    const answer = { content: [call("nothing", { a: 1 })], thought: "let me see" };
    const modelClient = new ScriptedModel([answer, "ok"]);
    const agent = new AssistantAgent({
      name: "h",
      modelClient,
      reflectOnToolUse: true,
      tools: [{ name: "something", description: "", parameters: { type: "object" }, execute: () => "" }],
    });
    expect(await shown(agent.onMessagesStream([]))).toBe(
      "---------- h (thought) ----------\nlet me see\n" +
        '---------- h (tool calls) ----------\nnothing({"a":1})\n' +
        '---------- h (tool results) ----------\nThere is no tool "nothing". The tools are: something.\n' +
        "---------- h ----------\nok\n",
    );
  });

  it("shows code, output and failures in their own colours", async () => {
    const runner = new CodeExecutorAgent({
      name: "runner",
      codeExecutor: new ScriptedExecutor([
        codeResult({ output: "fine\n" }),
        codeResult({ exitCode: 3, output: "no\n" }),
      ]),
    });
    const good = await shown(runner.runStream({ task: python("x = 1") }), { colors: true });
    expect(good).toContain("\u001B[33mx = 1\u001B[0m\n");
    expect(good).toContain(
      "\u001B[1;36m---------- runner (exit code 0) ----------\u001B[0m\n\u001B[32mfine\u001B[0m\n",
    );
    const bad = await shown(runner.runStream({ task: python("x = 1") }), { colors: true });
    expect(bad).toContain("\u001B[31mno\u001B[0m\n");
  });

  it("colours output next to a plot like other output", async () => {
    const displays = [{ data: { "image/png": new Uint8Array([1]) }, files: [] }];
    const codeExecutor = new ScriptedExecutor([codeResult({ exitCode: 3, output: "plotted\n", displays })]);
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const text = await shown(runner.runStream({ task: python("x") }), { colors: true });
    expect(text).toContain("\u001B[31mplotted\u001B[0m\n\n\u001B[31m[image]\u001B[0m\n");
  });

  it("removes control sequences that arrive in pieces", async () => {
    const modelClient = new ScriptedModel([]);
    modelClient.createStream = async function* createStream() {
      yield* ["a\u001B", "]0;owned", "\u0007\u009B", "31mb"];
      yield { content: "", usage: { promptTokens: 0, completionTokens: 0 }, finishReason: "stop" as const };
    };
    const agent = new AssistantAgent({ name: "h", modelClient, modelClientStream: true });
    const text = await shown(agent.onMessagesStream([]));
    expect(["\u001B", "\u009B", "\u0007"].filter((control) => text.includes(control))).toEqual([]);
  });

  it("removes control sequences from models, programs and names", async () => {
    const evil = "a\u001B]0;owned\u0007\u001B[2Jb";
    const runner = new CodeExecutorAgent({
      name: "runner",
      codeExecutor: new ScriptedExecutor([codeResult({ output: evil })]),
    });
    const coder = new AssistantAgent({
      name: "coder",
      modelClient: new ScriptedModel([evil + python("x")]),
      modelClientStream: true,
    });
    const team = new RoundRobinGroupChat({ participants: [coder, runner], maxTurns: 2 });
    const task = textMessage({ source: "\u001B[31muser\n----------", content: evil });
    const text = await shown(team.runStream({ task }), { summary: true });
    expect(text).not.toContain("\u001B");
    expect(text).toContain("---------- user ---------- ----------\nab\n");
  });

  it.each([
    [{ NO_COLOR: "1", FORCE_COLOR: "1" }, false],
    [{ NO_COLOR: "", FORCE_COLOR: "1" }, true],
    [{ NO_COLOR: "", FORCE_COLOR: "" }, false],
  ])("follows the environment variables %o", async (environment, colors) => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const agent = new AssistantAgent({ name: "helper", modelClient: new ScriptedModel(["hi"]) });
    const output = new Screen();
    await renderToConsole(agent.runStream({ task: "hello" }), { output });
    expect(output.text.includes("\u001B[")).toBe(colors);
  });

  it("ends the line and rethrows an error from the stream", async () => {
    const output = new Screen();
    const error = new Error("broken");
    const chunked = new ScriptedModel([]);
    chunked.createStream = async function* createStream() {
      yield "half a li";
      throw error;
    };
    const agent = new AssistantAgent({ name: "h", modelClient: chunked, modelClientStream: true });
    await expect(renderToConsole(agent.runStream(), { output, colors: false })).rejects.toBe(error);
    expect(output.text).toBe("---------- h ----------\nhalf a li\n");
  });

  it("rejects and ends the run when the output fails", async () => {
    const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error("EPIPE")) });
    output.on("error", () => undefined);
    const modelClient = new ScriptedModel(["hi"]);
    const agent = new AssistantAgent({ name: "h", modelClient });
    await expect(renderToConsole(agent.runStream({ task: "x" }), { output })).rejects.toThrow("EPIPE");
    expect(modelClient.requests).toHaveLength(0);
  });

  it("rejects a stream that ends without a result", async () => {
    async function* nothing(): AsyncGenerator<never> {}
    await expect(renderToConsole(nothing(), { output: new Screen() })).rejects.toSatisfy(InvalidInputError.isInstance);
  });
});
