/**
 * Measures the cost of telemetry. Without an SDK: a watched generator against the same one unwatched. With an SDK that drops
 * everything: the same blocks with and without it, alternately in one process.
 */
// needs: bash
import { watchStream } from "@fenced/core/telemetry";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { byTurns, report, timed } from "./measure.ts";

const times = 10_000;
const duration = { name: "bench.duration", description: "", unit: "s", boundaries: [1] };
const definition = { scope: "bench", name: "bench", attributes: { one: "one", two: 2 }, duration };
await using executor = new LocalCommandLineCodeExecutor();
await executor.start();

async function* twoItems(): AsyncGenerator<number, number, void> {
  yield 1;
  yield 2;
  return 3;
}

/** Reads `times` generators to their ends. */
async function readAll(open: () => AsyncGenerator<number, number, void>): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    for await (const item of open()) void item;
  }
}

async function block(): Promise<void> {
  const { exitCode, output } = await executor.executeCodeBlocks([{ language: "sh", code: ":" }]);
  if (exitCode !== 0) throw new Error(output);
}

/** With an SDK that creates spans and metrics but sends them nowhere. */
async function withSDK(action: () => Promise<number>): Promise<number> {
  const meters = new MeterProvider();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  metrics.setGlobalMeterProvider(meters);
  try {
    return await action();
  } finally {
    trace.disable();
    metrics.disable();
    context.disable();
    await meters.shutdown();
  }
}

const watched = () => timed(() => readAll(() => watchStream(definition, twoItems)));
const plain = () => timed(() => readAll(twoItems));

report("Telemetry", [
  {
    what: "10,000 generators of 2 items, watched without an SDK",
    unit: "ms",
    ...(await byTurns(20, plain, watched)),
    goal: "",
  },
  {
    what: "the same, with an SDK",
    unit: "ms",
    ...(await byTurns(20, plain, () => withSDK(watched))),
    goal: "",
  },
  {
    what: "local sh block `:`, with an SDK against without",
    unit: "ms",
    ...(await byTurns(
      200,
      () => timed(block),
      () => withSDK(() => timed(block)),
    )),
    goal: "",
  },
]);
