import { type ExecutionEvent, FunctionWithRequirements } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { metrics, SpanStatusCode, TelemetryRecorder, trace } from "@fenced/test-support/telemetry";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const sh = (code: string) => ({ language: "sh", code });
const name = "LocalCommandLineCodeExecutor";

describe("telemetry", needs("bash"), () => {
  let recorder: TelemetryRecorder;
  const executor = new LocalCommandLineCodeExecutor();

  beforeEach(async () => {
    recorder = new TelemetryRecorder();
    await executor.start();
    recorder.reset();
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await recorder[Symbol.asyncDispose]();
  });

  afterAll(async () => {
    await executor.stop();
  });

  it("has a span for the run and one for each block under it", async () => {
    await executor.executeCodeBlocks([sh("echo one"), sh("echo two")]);
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block sh", "  fenced.block sh"]);
    expect(recorder.span("fenced.run")).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      instrumentationScope: { name: "@fenced/executor-kit" },
      attributes: {
        "fenced.executor.name": name,
        "fenced.executor.isolation": "none",
        "fenced.executor.id": expect.stringMatching(/^[\da-f-]{36}$/),
        "fenced.run.blocks": 2,
        "fenced.exit_code": 0,
        "fenced.timed_out": false,
        "fenced.truncated": false,
        "fenced.state_lost": false,
      },
    });
    expect(recorder.spans.map(({ attributes }) => attributes["fenced.block.index"])).toEqual([0, 1, undefined]);
    expect(recorder.spans[0]?.attributes).toMatchObject({ "fenced.language": "sh", "fenced.block.output.size": 4 });
  });

  it("covers the whole life of an executor, with its lazy start under the run that needed it", async () => {
    const other = new LocalCommandLineCodeExecutor();
    await other.executeCodeBlocks([sh(":")]);
    await other.restart();
    await other.stop();
    expect(recorder.tree()).toEqual([
      "fenced.run",
      "  fenced.executor.start",
      "  fenced.block sh",
      "fenced.executor.restart",
      "fenced.executor.stop",
    ]);
  });

  it("has a span for the set-up of functions, under the first run", async () => {
    const add = FunctionWithRequirements.fromCallable(function add(one: number, other: number) {
      return one + other;
    });
    await using other = new LocalCommandLineCodeExecutor({ functions: [add] });
    await other.executeCodeBlocks([sh(":")]);
    await other.executeCodeBlocks([sh(":")]);
    expect(recorder.tree()).toEqual([
      "fenced.run",
      "  fenced.executor.start",
      "  fenced.executor.set_up_functions",
      "  fenced.block sh",
      "fenced.run",
      "  fenced.block sh",
    ]);
  });

  it("marks the block of a program that failed, but not the run, which has a result", async () => {
    const { exitCode } = await executor.executeCodeBlocks([sh("exit 3"), sh(":")]);
    expect(exitCode).toBe(3);
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block sh !program_failed"]);
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.exit_code": 3, "fenced.run.blocks": 2 });
  });

  it("marks a block that timed out", async () => {
    await executor.executeCodeBlocks([sh("sleep 60")], { timeoutMs: 100 });
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block sh !timeout"]);
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.exit_code": 124, "fenced.timed_out": true });
  });

  it("names only languages that it runs, since a model can invent any number of others", async () => {
    await executor.executeCodeBlocks([{ language: "cobol-74", code: "x" }]);
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block _OTHER !program_failed"]);
    expect(recorder.text()).not.toContain("cobol");
  });

  it("marks an aborted run and its block with the reason's name", async () => {
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      for await (const { type } of executor.streamCodeBlocks([sh("echo here; sleep 60")], { signal: abort.signal })) {
        if (type === "stdout") abort.abort();
      }
    };
    await expect(run()).rejects.toThrow("aborted");
    expect(recorder.tree()).toEqual(["fenced.run !AbortError", "  fenced.block sh !AbortError"]);
  });

  it("marks a run that stop() interrupts with the code of its error", async () => {
    const events = executor.streamCodeBlocks([sh("echo here; sleep 60")])[Symbol.asyncIterator]();
    await events.next();
    await events.next();
    const [cut] = await Promise.allSettled([events.next(), executor.stop()]);
    expect(cut).toMatchObject({ status: "rejected", reason: { code: "executor_stopped" } });
    expect(recorder.tree()).toEqual([
      "fenced.run !executor_stopped",
      "  fenced.block sh !executor_stopped",
      "fenced.executor.stop",
    ]);
  });

  it("ends the spans without an error when the consumer leaves", async () => {
    for await (const event of executor.streamCodeBlocks([sh("echo here; sleep 60")])) {
      if (event.type === "stdout") break;
    }
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block sh"]);
    for (const span of recorder.spans) expect(span.attributes).toMatchObject({ "fenced.left_early": true });
  });

  it("ends the run's span when the consumer leaves while it waits", async () => {
    const events = executor.streamCodeBlocks([sh("sleep 60")])[Symbol.asyncIterator]();
    await events.next();
    const [waiting] = await Promise.allSettled([events.next(), events.return?.()]);
    expect(waiting).toMatchObject({ status: "rejected", reason: { name: "AbortError" } });
    expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block sh !AbortError"]);
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.left_early": true });
  });

  it("does not say that a consumer left early if it leaves at the result", async () => {
    for await (const event of executor.streamCodeBlocks([sh(":")])) {
      if (event.type === "result") break;
    }
    expect(recorder.span("fenced.run").attributes).not.toHaveProperty("fenced.left_early");
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.exit_code": 0 });
  });

  it("has no span for a stream that nobody reads", async () => {
    const events = executor.streamCodeBlocks([sh(":")])[Symbol.asyncIterator]();
    await events.return?.();
    expect(recorder.spans).toEqual([]);
  });

  it("puts a stream's spans under the span that was active when it was created, wherever it is read", async () => {
    const tracer = trace.getTracer("test");
    const events = tracer.startActiveSpan("request", (span) => {
      const stream = executor.streamCodeBlocks([sh("echo here")]);
      span.end();
      return stream;
    });
    await tracer.startActiveSpan("reader", async (span) => {
      const seen: ExecutionEvent[] = [];
      for await (const event of events) {
        seen.push(event);
        expect(trace.getActiveSpan()).toBe(span);
      }
      span.end();
      expect(seen.at(-1)).toMatchObject({ type: "result" });
    });
    expect(recorder.tree()).toEqual(["request", "  fenced.run", "    fenced.block sh", "reader"]);
  });

  it("separates overlapping runs", async () => {
    const tracer = trace.getTracer("test");
    await Promise.all(
      ["one", "two", "three"].map((request) =>
        tracer.startActiveSpan(request, async (span) => {
          await executor.executeCodeBlocks([sh("sleep 0.1"), sh(":")]);
          span.end();
        }),
      ),
    );
    const run = ["  fenced.run", "    fenced.block sh", "    fenced.block sh"];
    expect(recorder.tree()).toEqual(["one", ...run, "two", ...run, "three", ...run]);
  });

  it("contains neither code nor output nor error messages", async () => {
    const stop = new AbortController();
    const run = executor.executeCodeBlocks([sh("echo SECRET-4711; exit 1")], { env: { KEY: "SECRET-4711" } });
    await run;
    stop.abort(new Error("SECRET-4711"));
    await expect(executor.executeCodeBlocks([sh(":")], { signal: stop.signal })).rejects.toThrow("SECRET");
    expect(recorder.spans).toHaveLength(3);
    expect(recorder.text()).not.toContain("SECRET");
  });

  it.each(["true", "SPAN_ONLY", "span_and_event"])("contains code and output if the variable is %s", async (value) => {
    vi.stubEnv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value);
    await executor.executeCodeBlocks([sh("printf '%020000d' 7")]);
    const { attributes } = recorder.span("fenced.block sh");
    expect(attributes["fenced.block.code"]).toBe("printf '%020000d' 7");
    expect(attributes["fenced.block.output"]).toBe(`${"0".repeat(16_384)}\n[... cut, 20000 characters in total ...]`);
  });

  it.each(["", "false", "NO_CONTENT", "EVENT_ONLY"])("contains no code if the variable is %j", async (value) => {
    vi.stubEnv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value);
    await executor.executeCodeBlocks([sh("echo here")]);
    expect(recorder.text()).not.toContain("echo");
  });

  it("records counts and durations as metrics", async () => {
    await recorder.histograms();
    await executor.executeCodeBlocks([sh("printf 12345"), sh("exit 1")]);
    await executor.stop();
    const histograms = await recorder.histograms();
    const executorAttributes = { "fenced.executor.name": name, "fenced.executor.isolation": "none" };
    const blockAttributes = { ...executorAttributes, "fenced.language": "sh" };
    expect(histograms.get("fenced.run.duration")).toMatchObject([
      { attributes: executorAttributes, value: { count: 1 } },
    ]);
    expect(histograms.get("fenced.block.duration")).toMatchObject([
      { attributes: blockAttributes, value: { count: 1 } },
      { attributes: { ...blockAttributes, "error.type": "program_failed" }, value: { count: 1 } },
    ]);
    expect(histograms.get("fenced.block.output.size")).toMatchObject([
      { attributes: blockAttributes, value: { count: 2, sum: 5 } },
    ]);
    expect(histograms.get("fenced.executor.operation.duration")).toMatchObject([
      { attributes: { ...executorAttributes, "fenced.executor.operation": "stop" }, value: { count: 1 } },
    ]);
    const [span] = recorder.spans.filter((each) => each.name === "fenced.run");
    const [point] = histograms.get("fenced.run.duration") ?? [];
    expect(point?.value.sum).toBeCloseTo((span?.duration[0] ?? 0) + (span?.duration[1] ?? 0) / 1e9, 1);
    expect(point?.value.buckets.boundaries.slice(0, 3)).toEqual([0.005, 0.01, 0.025]);
  });

  it("does not fail a run when the SDK throws", async () => {
    vi.spyOn(trace.getTracerProvider(), "getTracer").mockImplementation(() => {
      throw new Error("the SDK is broken");
    });
    const { output } = await executor.executeCodeBlocks([sh("echo here")]);
    vi.restoreAllMocks();
    expect(output).toBe("here\n");
    expect(recorder.spans).toEqual([]);
  });

  it("does not fail a run when spans and meters of the SDK throw", async () => {
    const broken = () => {
      throw new Error("the SDK is broken");
    };
    const span = trace.getTracer("test").startSpan("test");
    vi.spyOn(span, "spanContext").mockImplementation(broken);
    vi.spyOn(trace.getTracerProvider(), "getTracer").mockReturnValue({
      startSpan: () => span,
      startActiveSpan: broken,
    });
    vi.spyOn(metrics.getMeterProvider(), "getMeter").mockImplementation(broken);
    const { output } = await executor.executeCodeBlocks([sh("echo here")]);
    vi.restoreAllMocks();
    expect(output).toBe("here\n");
  });
});

describe("without an SDK", needs("bash"), () => {
  it("runs, streams, leaves a stream and aborts as usual", async () => {
    await using executor = new LocalCommandLineCodeExecutor();
    expect(trace.getActiveSpan()).toBeUndefined();
    const { exitCode } = await executor.executeCodeBlocks([sh("echo one"), sh("exit 2")]);
    expect(exitCode).toBe(2);
    const types: string[] = [];
    for await (const event of executor.streamCodeBlocks([sh("echo here; sleep 60")])) {
      types.push(event.type);
      if (event.type === "stdout") break;
    }
    expect(types).toEqual(["block-start", "stdout"]);
    const abort = new AbortController();
    const run = executor.executeCodeBlocks([sh("sleep 60")], { signal: abort.signal });
    abort.abort();
    await expect(run).rejects.toThrow("aborted");
  });
});
