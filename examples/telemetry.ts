// Prints a team's OpenTelemetry spans and metrics. A real program would send them to a collector.
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AssistantAgent, CodeExecutorAgent, RoundRobinGroupChat, TextMentionTermination } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
// #region set-up
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";

const spanExporter = new InMemorySpanExporter();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] }));
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
// #endregion

await using server = await startOpenAIServer([
  { text: "```javascript\nconsole.log(undefinedName)\n```" },
  { text: "Once more:\n\n```javascript\nconsole.log(`product: ${6 * 7}`)\n```" },
  { text: "It is 42. TERMINATE" },
]);
const service = createOpenAICompatible({ name: "service", baseURL: server.baseURL });
const modelClient = new AISDKChatCompletionClient({ model: service("qwen3") });

await using codeExecutor = new LocalCommandLineCodeExecutor();
const coder = new AssistantAgent({ name: "coder", modelClient });
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
const terminationCondition = new TextMentionTermination("TERMINATE");
const team = new RoundRobinGroupChat({ name: "pair", participants: [coder, runner], terminationCondition });
await team.run({ task: "What is 6 times 7?" });

// #region print
const spans = spanExporter.getFinishedSpans().toSorted((one, other) => startOf(one) - startOf(other));
for (const line of tree(undefined)) console.log(line);

await reader.forceFlush();
const collected = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
for (const { descriptor, dataPoints } of collected.flatMap((scope) => scope.metrics)) {
  for (const { attributes, value } of dataPoints) {
    const { count, sum } = typeof value === "number" ? { count: 1, sum: value } : value;
    console.log(`${descriptor.name} count ${count}, sum ${sum} ${descriptor.unit}`, attributes);
  }
}

function tree(parent: string | undefined, indent = ""): string[] {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parent)
    .flatMap((span) => {
      const error = span.attributes["error.type"];
      const line = `${indent}${span.name}${typeof error === "string" ? ` (${error})` : ""}`;
      return [line, ...tree(span.spanContext().spanId, `${indent}  `)];
    });
}

function startOf({ startTime: [seconds, nanoseconds] }: ReadableSpan): number {
  return seconds * 1e9 + nanoseconds;
}
// #endregion

const turnOfRunner = ["  invoke_agent runner", "    fenced.run", "      fenced.block javascript"];
const turnOfCoder = ["  invoke_agent coder", "    chat qwen3"];
assert.deepEqual(tree(undefined), [
  "invoke_workflow pair",
  ...turnOfCoder,
  "  invoke_agent runner",
  "    fenced.executor.start",
  "    fenced.run",
  "      fenced.block javascript (program_failed)",
  ...turnOfCoder,
  ...turnOfRunner,
  ...turnOfCoder,
]);
const names = collected.flatMap((scope) => scope.metrics.map(({ descriptor }) => descriptor.name));
assert.deepEqual(names.toSorted(), [
  "fenced.block.duration",
  "fenced.block.output.size",
  "fenced.executor.operation.duration",
  "fenced.run.duration",
  "gen_ai.client.operation.duration",
  "gen_ai.client.token.usage",
  "gen_ai.invoke_agent.duration",
  "gen_ai.workflow.duration",
]);
assert.doesNotMatch(JSON.stringify(spans.map(({ attributes }) => attributes)), /6 \* 7|product|undefinedName|It is/);
