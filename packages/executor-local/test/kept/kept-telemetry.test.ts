import { hostFunction } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { connectKept, createKept } from "../support/kept-subject.ts";

const python = (code: string) => ({ language: "python", code });
const keepAliveMs = 120_000;

describe("telemetry of submitted runs that go on in their place", needs("python3"), () => {
  let recorder: TelemetryRecorder;
  beforeEach(() => {
    recorder = new TelemetryRecorder();
  });
  afterEach(async () => {
    await recorder[Symbol.asyncDispose]();
    if (recorder.complaints.length > 0) throw new Error(recorder.complaints.join("\n"));
  });

  it("has a span for the run, each block, and each host call under its block", async () => {
    const who = hostFunction({ name: "who", description: "Says who.", input: z.object({}), execute: () => "me" });
    await using executor = createKept({ warm: {}, keepAliveMs, functions: [who] });
    const run = await executor.submit([
      python("from functions import who\nprint(who())"),
      python("import sys\nsys.exit(3)"),
    ]);
    expect((await run.result()).exitCode).toBe(3);
    expect(recorder.tree()).toEqual([
      "fenced.run",
      "  fenced.executor.start",
      "  fenced.executor.set_up_functions",
      "  fenced.block python",
      "    fenced.host_call",
      "  fenced.block python !program_failed",
    ]);
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.exit_code": 3, "fenced.run.blocks": 2 });
    const histograms = await recorder.histograms();
    expect(histograms.get("fenced.run.duration")).toHaveLength(1);
    expect(histograms.get("fenced.block.output.size")).toHaveLength(1);
  });

  it("records each run and each block once, where it ends", async () => {
    const executor = createKept({ warm: {}, keepAliveMs });
    const run = await executor.submit([
      python("print('first')"),
      python("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"),
      python("print('last')"),
    ]);
    for await (const { event } of run.events()) if (event.type === "block-start" && event.index === 1) break;
    const { handle } = executor;
    await executor.detach();
    expect(recorder.tree()).toEqual([
      "fenced.run",
      "  fenced.executor.start",
      "  fenced.block python",
      "  fenced.block python",
      "fenced.executor.stop",
    ]);
    expect(recorder.span("fenced.run").attributes).toMatchObject({ "fenced.left_early": true });
    expect((await recorder.histograms()).get("fenced.run.duration")).toBeUndefined();
    recorder.reset();

    const again = await connectKept(handle);
    await again.files.write("go", "");
    expect((await again.run(run.id).result()).exitCode).toBe(0);
    const later = recorder.tree().filter((line) => !line.includes("executor."));
    expect(later).toEqual(["fenced.run", "  fenced.block python", "  fenced.block python"]);
    const blocks = recorder.spans.filter(({ name }) => name === "fenced.block python");
    expect(blocks.map(({ attributes }) => attributes["fenced.block.index"])).toEqual([1, 2]);
    await again.stop();
  });

  it("leaves off in a program that is cut off", async () => {
    const executor = createKept({ warm: {}, keepAliveMs });
    const run = await executor.submit([python("import time\ntime.sleep(60)")]);
    for await (const { event } of run.events()) if (event.type === "block-start") break;
    await using again = await connectKept(executor.handle, { takeOver: true });
    await expect(run.result()).rejects.toThrow("taken this session over");
    const [own] = recorder.spans.filter(({ name }) => name === "fenced.run");
    expect(own?.attributes).toMatchObject({ "fenced.left_early": true });
    expect(recorder.tree()).toContain("  fenced.block python");
    expect((await recorder.histograms()).get("fenced.run.duration")).toBeUndefined();
    await again.stop();
  });

  it("marks a run that is cancelled, and its block", async () => {
    await using executor = createKept({ warm: {}, keepAliveMs });
    const run = await executor.submit([python("import time\ntime.sleep(60)")]);
    for await (const { event } of run.events()) if (event.type === "block-start") break;
    await run.cancel();
    await expect(run.result()).rejects.toThrow("cancelled");
    expect(recorder.tree()).toEqual([
      "fenced.run !AbortError",
      "  fenced.executor.start",
      "  fenced.block python !AbortError",
    ]);
  });
});
