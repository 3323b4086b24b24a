import { ModelClientError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import type { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import {
  type AgentResponse,
  AssistantAgent,
  BaseChatAgent,
  CodeExecutorTool,
  isTaskResult,
  RoundRobinGroupChat,
  tool,
} from "../../src/index.ts";
import { call, never, ScriptedModel } from "../support/scripted-model.ts";
import { captureVariable, recordTelemetry } from "../support/telemetry.ts";

let recorder: TelemetryRecorder;

beforeEach(() => {
  recorder = recordTelemetry();
});

describe("spans of turns", () => {
  it("end when an agent throws before it answers", async () => {
    class Hasty extends BaseChatAgent {
      override onMessagesStream(): AsyncGenerator<AgentResponse> {
        throw new ModelClientError("There is nobody", { remedy: "None." });
      }
    }
    const agent = new Hasty({ name: "hasty", description: "Fails at once." });
    await expect(agent.run({ task: "Go." })).rejects.toThrow("nobody");
    expect(recorder.tree()).toEqual(["invoke_agent hasty !model_failed"]);
    expect((await recorder.histograms()).get("gen_ai.invoke_agent.duration")).toHaveLength(1);
  });
});

describe("spans of model calls", () => {
  it("end when the run is aborted", async () => {
    const abort = new AbortController();
    const modelClient = new ScriptedModel([never(() => abort.abort())], { family: "unknown" });
    const agent = new AssistantAgent({ name: "coder", modelClient });
    await expect(agent.run({ task: "Go.", signal: abort.signal })).rejects.toThrow("aborted");
    expect(recorder.tree()).toEqual(["invoke_agent coder !AbortError", "  chat !AbortError"]);
    expect(recorder.span("chat").attributes).toMatchObject({ "gen_ai.provider.name": "_OTHER" });
    expect(recorder.span("chat").attributes).not.toHaveProperty("gen_ai.request.model");
  });

  it("end without an error when the consumer leaves early", async () => {
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

  it("are not marked as left early if the consumer leaves with the result", async () => {
    const agent = new AssistantAgent({ name: "coder", modelClient: new ScriptedModel(["one"]) });
    const team = new RoundRobinGroupChat({ name: "team", participants: [agent], maxTurns: 1 });
    for await (const item of team.runStream({ task: "Count." })) {
      if (isTaskResult(item)) break;
    }
    expect(recorder.span("invoke_workflow team").attributes).not.toHaveProperty("fenced.left_early");
  });

  it("omit token counts that the service did not report, and name the JSON output type", async () => {
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

describe("spans of tool calls", () => {
  const parameters = z.object({ secret: z.string() });

  it("are siblings of the model call's span, failed or not", async () => {
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

  it("carry arguments and results if the content of messages is captured", async () => {
    vi.stubEnv(captureVariable, "true");
    const good = tool({ name: "good", description: "Works.", parameters, execute: ({ secret }) => `got ${secret}` });
    const modelClient = new ScriptedModel([{ content: [call("good", { secret: "x" })], thought: "I call." }, "Done."]);
    const agent = new AssistantAgent({ name: "caller", modelClient, tools: [good], reflectOnToolUse: true });
    await agent.run({ task: "Call." });
    expect(recorder.span("execute_tool good").attributes).toMatchObject({
      "gen_ai.tool.call.arguments": '{"secret":"x"}',
      "gen_ai.tool.call.result": "got x",
    });
    const parts = [
      { type: "reasoning", content: "I call." },
      { type: "tool_call", id: "call-good", name: "good", arguments: '{"secret":"x"}' },
    ];
    const [first, last] = recorder.spans.filter(({ name }) => name === "chat scripted");
    expect(JSON.parse(String(first?.attributes["gen_ai.output.messages"]))).toEqual([
      { role: "assistant", parts, finish_reason: "tool_call" },
    ]);
    expect(JSON.parse(String(last?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "system", parts: [{ type: "text", content: expect.any(String) }] },
      { role: "user", parts: [{ type: "text", content: "Call." }] },
      { role: "assistant", parts },
      { role: "tool", parts: [{ type: "tool_call_response", id: "call-good", response: "got x" }] },
    ]);
  });

  it("are parents of an executor's runs", needs("bash"), async () => {
    await using executor = new LocalCommandLineCodeExecutor();
    const modelClient = new ScriptedModel([[call("execute_code", { language: "sh", code: ":" })]]);
    await new AssistantAgent({ name: "caller", modelClient, tools: [new CodeExecutorTool(executor)] }).run();
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
