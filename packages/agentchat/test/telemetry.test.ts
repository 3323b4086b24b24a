import { join } from "node:path";
import { ModelClientError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
import { needs } from "@fenced/test-support";
import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import {
  AssistantAgent,
  BaseChatAgent,
  CodeExecutionTool,
  CodeExecutorAgent,
  isTaskResult,
  type Response,
  RoundRobinGroupChat,
  TextMentionTermination,
  tool,
} from "../src/index.ts";
import { call, never, ScriptedModel } from "./support/scripted-model.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const directory = temporaryDirectory();
const captureVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const program = "```sh\necho SECRET-4711\n```";
let recorder: TelemetryRecorder;

beforeEach(() => {
  recorder = new TelemetryRecorder();
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await recorder[Symbol.asyncDispose]();
});

/** A client that answers from a record of these answers. */
async function replay(answers: readonly string[]): Promise<ReplayChatCompletionClient> {
  const file = join(directory.path, "session.jsonl");
  const model = new ScriptedModel(answers, { family: "gpt-4o", provider: "openai" });
  const client = new RecordingChatCompletionClient({ client: model, file });
  for (const content of answers) await client.create([{ role: "user", content }]);
  return new ReplayChatCompletionClient({ file });
}

describe("a team run", needs("bash"), () => {
  async function runTeam(answers: readonly string[] = [program, "It works. TERMINATE"]): Promise<void> {
    const modelClient = await replay(answers);
    await using codeExecutor = new LocalCommandLineCodeExecutor();
    const coder = new AssistantAgent({ name: "coder", modelClient, modelClientStream: true, description: "Writes." });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const terminationCondition = new TextMentionTermination("TERMINATE");
    const team = new RoundRobinGroupChat({ name: "pair", participants: [coder, runner], terminationCondition });
    await team.run({ task: "Print SECRET-4711." });
  }

  it("is one tree: team, turns, model calls, runs, blocks", async () => {
    await runTeam();
    expect(recorder.tree()).toEqual([
      "invoke_workflow pair",
      "  invoke_agent coder",
      "    chat gpt-4o",
      "  invoke_agent runner",
      "    fenced.executor.start",
      "    fenced.run",
      "      fenced.block sh",
      "  invoke_agent coder",
      "    chat gpt-4o",
      "fenced.executor.stop",
    ]);
  });

  it("speaks the words of the conventions", async () => {
    await runTeam();
    expect(recorder.span("invoke_workflow pair")).toMatchObject({
      kind: 0,
      instrumentationScope: {
        name: "@fenced/agentchat",
        schemaUrl: "https://opentelemetry.io/schemas/gen-ai/1.42.0",
      },
      attributes: {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "pair",
        "fenced.team.participants": 2,
        "fenced.team.messages": 4,
      },
    });
    const [turn] = recorder.spans.filter(({ name }) => name === "invoke_agent coder");
    expect(turn).toMatchObject({
      kind: 0,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coder",
        "gen_ai.agent.description": "Writes.",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
      },
    });
    const [chat] = recorder.spans.filter(({ name }) => name === "chat gpt-4o");
    expect(chat).toMatchObject({
      kind: 2,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.stream": true,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": expect.any(Number),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
      },
    });
  });

  it("carries nothing of what was said, written or printed", async () => {
    await runTeam();
    expect(recorder.spans).toHaveLength(10);
    expect(recorder.text()).not.toMatch(/SECRET|echo|works/);
  });

  it("carries it if asked for", async () => {
    vi.stubEnv(captureVariable, "SPAN_ONLY");
    await runTeam();
    const [first, last] = recorder.spans.filter(({ name }) => name === "chat gpt-4o");
    expect(JSON.parse(String(last?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "system", parts: [{ type: "text", content: expect.any(String) }] },
      { role: "user", parts: [{ type: "text", content: "Print SECRET-4711." }] },
      { role: "assistant", parts: [{ type: "text", content: program }] },
      { role: "user", parts: [{ type: "text", content: "SECRET-4711\n" }] },
    ]);
    expect(JSON.parse(String(first?.attributes["gen_ai.output.messages"]))).toEqual([
      { role: "assistant", parts: [{ type: "text", content: program }], finish_reason: "stop" },
    ]);
    expect(recorder.span("fenced.block sh").attributes["fenced.block.output"]).toBe("SECRET-4711\n");
  });

  it("counts and times in metrics", async () => {
    await recorder.histograms();
    await runTeam();
    const histograms = await recorder.histograms();
    const model = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4o",
    };
    expect(histograms.get("gen_ai.client.operation.duration")).toMatchObject([
      { attributes: model, value: { count: 2, buckets: { boundaries: expect.arrayContaining([0.01, 81.92]) } } },
    ]);
    expect(histograms.get("gen_ai.client.token.usage")).toMatchObject([
      { attributes: { ...model, "gen_ai.token.type": "input" }, value: { count: 2, sum: 20, min: 10 } },
      { attributes: { ...model, "gen_ai.token.type": "output" }, value: { count: 2, sum: 10, min: 5 } },
    ]);
    expect(histograms.get("gen_ai.invoke_agent.duration")).toMatchObject([
      { attributes: { "gen_ai.agent.name": "coder" }, value: { count: 2 } },
      { attributes: { "gen_ai.agent.name": "runner" }, value: { count: 1 } },
    ]);
    expect(histograms.get("gen_ai.workflow.duration")).toMatchObject([
      { attributes: { "gen_ai.workflow.name": "pair" }, value: { count: 1 } },
    ]);
  });

  it("ends with the error of a model, all the way up", async () => {
    await expect(runTeam([program])).rejects.toThrow("beyond the record");
    expect(recorder.tree()).toEqual([
      "invoke_workflow pair !model_failed",
      "  invoke_agent coder",
      "    chat gpt-4o",
      "  invoke_agent runner",
      "    fenced.executor.start",
      "    fenced.run",
      "      fenced.block sh",
      "  invoke_agent coder !model_failed",
      "    chat gpt-4o !model_failed",
      "fenced.executor.stop",
    ]);
    expect(recorder.text()).not.toContain("beyond the record");
  });
});

describe("turns", () => {
  it("end when an agent throws before it answers", async () => {
    class Hasty extends BaseChatAgent {
      override onMessagesStream(): AsyncGenerator<Response> {
        throw new ModelClientError("There is nobody", { remedy: "None." });
      }
    }
    const agent = new Hasty({ name: "hasty", description: "Fails at once." });
    await expect(agent.run({ task: "Go." })).rejects.toThrow("nobody");
    expect(recorder.tree()).toEqual(["invoke_agent hasty !model_failed"]);
    expect((await recorder.histograms()).get("gen_ai.invoke_agent.duration")).toHaveLength(1);
  });
});

describe("model calls", () => {
  it("end when the run is aborted", async () => {
    const abort = new AbortController();
    const modelClient = new ScriptedModel([never(() => abort.abort())], { family: "unknown" });
    const agent = new AssistantAgent({ name: "coder", modelClient });
    await expect(agent.run({ task: "Go.", signal: abort.signal })).rejects.toThrow("aborted");
    expect(recorder.tree()).toEqual(["invoke_agent coder !AbortError", "  chat !AbortError"]);
    expect(recorder.span("chat").attributes).toMatchObject({ "gen_ai.provider.name": "_OTHER" });
    expect(recorder.span("chat").attributes).not.toHaveProperty("gen_ai.request.model");
  });

  it("end when the consumer leaves, which is no failure", async () => {
    const agent = new AssistantAgent({
      name: "coder",
      modelClient: new ScriptedModel(["one two three"]),
      modelClientStream: true,
    });
    const team = new RoundRobinGroupChat({ name: "team", participants: [agent] });
    for await (const item of team.runStream({ task: "Count." })) {
      if ("type" in item && item.type === "ModelClientStreamingChunkEvent") break;
    }
    expect(recorder.tree()).toEqual(["invoke_workflow team", "  invoke_agent coder", "    chat scripted"]);
    for (const { attributes } of recorder.spans) expect(attributes).toMatchObject({ "fenced.left_early": true });
  });

  it("do not take a consumer that leaves with the result for one that leaves early", async () => {
    const agent = new AssistantAgent({ name: "coder", modelClient: new ScriptedModel(["one"]) });
    const team = new RoundRobinGroupChat({ name: "team", participants: [agent], maxTurns: 1 });
    for await (const item of team.runStream({ task: "Count." })) {
      if (isTaskResult(item)) break;
    }
    expect(recorder.span("invoke_workflow team").attributes).not.toHaveProperty("fenced.left_early");
  });

  it("say no tokens when the service does not, and that JSON was asked for", async () => {
    const answer = { content: '{"n":1}', usage: { promptTokens: 0, completionTokens: 0 } };
    const outputSchema = z.object({ n: z.number() });
    const agent = new AssistantAgent({ name: "counter", modelClient: new ScriptedModel([answer]), outputSchema });
    await agent.onMessages([]);
    expect(recorder.tree()).toEqual(["invoke_agent counter", "  chat scripted"]);
    const { attributes } = recorder.span("chat scripted");
    expect(attributes).toMatchObject({ "gen_ai.output.type": "json" });
    expect(attributes).not.toHaveProperty("gen_ai.usage.input_tokens");
    expect((await recorder.histograms()).has("gen_ai.client.token.usage")).toBe(false);
  });
});

describe("tool executions", () => {
  const parameters = z.object({ secret: z.string() });

  it("have spans beside the model call, failed or not", async () => {
    const good = tool({ name: "good", description: "Works.", parameters, execute: ({ secret }) => `got ${secret}` });
    const bad = tool({
      name: "bad",
      description: "Fails.",
      parameters,
      execute: ({ secret }) => {
        throw new ModelClientError(secret, { remedy: "None." });
      },
    });
    const args = { secret: "SECRET-4711" };
    const calls = [call("good", args, "call-1"), call("bad", args), call("good", "{}"), call("unknown-SECRET", args)];
    const modelClient = new ScriptedModel([calls]);
    await new AssistantAgent({ name: "caller", modelClient, tools: [good, bad] }).run({ task: "Call." });
    expect(recorder.tree().toSorted()).toEqual(
      [
        "invoke_agent caller",
        "  chat scripted",
        "  execute_tool good",
        "  execute_tool bad !model_failed",
        "  execute_tool good !Error",
      ].toSorted(),
    );
    expect(recorder.spans.find(({ attributes }) => attributes["gen_ai.tool.call.id"] === "call-1")?.attributes).toEqual(
      {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "good",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Works.",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.agent.name": "caller",
      },
    );
    expect(recorder.span("chat scripted").attributes["gen_ai.response.finish_reasons"]).toEqual(["tool_call"]);
    expect(recorder.text()).not.toContain("SECRET");
    expect((await recorder.histograms()).get("gen_ai.execute_tool.duration")).toHaveLength(3);
  });

  it("carry arguments and results if asked for, and the model's messages name their images", async () => {
    vi.stubEnv(captureVariable, "true");
    const good = tool({ name: "good", description: "Works.", parameters, execute: ({ secret }) => `got ${secret}` });
    const modelClient = new ScriptedModel([{ content: [call("good", { secret: "x" })], thought: "I call." }, "Done."]);
    const agent = new AssistantAgent({ name: "caller", modelClient, tools: [good], reflectOnToolUse: true });
    await agent.run({ task: "Call." });
    expect(recorder.span("execute_tool good").attributes).toMatchObject({
      "gen_ai.tool.call.arguments": '{"secret":"x"}',
      "gen_ai.tool.call.result": "got x",
    });
    const last = recorder.spans.findLast(({ name }) => name === "chat scripted");
    expect(JSON.parse(String(last?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "system", parts: [{ type: "text", content: expect.any(String) }] },
      { role: "user", parts: [{ type: "text", content: "Call." }] },
      {
        role: "assistant",
        parts: [
          { type: "reasoning", content: "I call." },
          { type: "tool_call", id: "call-good", name: "good", arguments: '{"secret":"x"}' },
        ],
      },
      { role: "tool", parts: [{ type: "tool_call_response", id: "call-good", response: "got x" }] },
    ]);
  });

  it("have the runs of an executor under them", needs("bash"), async () => {
    await using executor = new LocalCommandLineCodeExecutor();
    const modelClient = new ScriptedModel([[call("execute_code", { language: "sh", code: ":" })]]);
    await new AssistantAgent({ name: "caller", modelClient, tools: [new CodeExecutionTool(executor)] }).run();
    expect(recorder.tree()).toEqual([
      "invoke_agent caller",
      "  chat scripted",
      "  execute_tool execute_code",
      "    fenced.run",
      "      fenced.executor.start",
      "      fenced.block sh",
    ]);
  });
});
