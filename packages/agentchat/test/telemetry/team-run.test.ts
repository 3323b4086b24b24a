import { join } from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
import { needs } from "@fenced/test-support";
import type { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { AssistantAgent, CodeExecutorAgent, RoundRobinGroupChat, TextMentionTermination } from "../../src/index.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { captureVariable, recordTelemetry } from "../support/telemetry.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const directory = temporaryDirectory();
const program = "```sh\necho SECRET-4711\n```";

/** A client that replays a recording of these answers. */
async function replay(answers: readonly string[]): Promise<ReplayChatCompletionClient> {
  const file = join(directory.path, "session.jsonl");
  const model = new ScriptedModel(answers, { family: "gpt-4o", provider: "openai" });
  const client = new RecordingChatCompletionClient({ client: model, file });
  for (const content of answers) await client.create([{ role: "user", content }]);
  return new ReplayChatCompletionClient({ file });
}

let recorder: TelemetryRecorder;

beforeEach(() => {
  recorder = recordTelemetry();
});

describe("telemetry of a team run", needs("bash"), () => {
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

  it("follows the GenAI conventions of OpenTelemetry", async () => {
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

  it("contains no messages, code or output", async () => {
    await runTeam();
    expect(recorder.spans).toHaveLength(10);
    expect(recorder.text()).not.toMatch(/SECRET|echo|works/);
  });

  it("contains messages, code and output if content is captured", async () => {
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

  it("records durations and token counts as metrics", async () => {
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

  it("marks every span up to the team with a model's error", async () => {
    await expect(runTeam([program])).rejects.toThrow("The recording");
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
    expect(recorder.text()).not.toContain("The recording");
  });
});
