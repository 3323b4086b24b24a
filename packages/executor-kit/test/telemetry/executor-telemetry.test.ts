import { BackendUnavailableError } from "@fenced/core";
import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ScriptedExecutor } from "../support/scripted-executor.ts";

const gone = () => new BackendUnavailableError("The backend is gone", { remedy: "Bring it back." });
let recorder: TelemetryRecorder;

beforeEach(() => {
  recorder = new TelemetryRecorder();
});

afterEach(async () => {
  await recorder[Symbol.asyncDispose]();
});

it("marks a failed start, and the run that waited for it", async () => {
  const executor = new ScriptedExecutor({ open: () => Promise.reject(gone()) });
  await expect(executor.executeCodeBlocks([{ language: "say", code: "x" }])).rejects.toThrow("gone");
  expect(recorder.tree()).toEqual(["fenced.run !backend_unavailable", "  fenced.executor.start !backend_unavailable"]);
  const durations = (await recorder.histograms()).get("fenced.executor.operation.duration");
  expect(durations).toMatchObject([
    { attributes: { "fenced.executor.operation": "start", "error.type": "backend_unavailable" } },
  ]);
});

it("marks a block whose backend failed, and its run", async () => {
  await using executor = new ScriptedExecutor({
    run: () => Promise.reject(gone()),
  });
  await expect(executor.executeCodeBlocks([{ language: "say", code: "x" }])).rejects.toThrow("gone");
  expect(recorder.tree()).toEqual([
    "fenced.run !backend_unavailable",
    "  fenced.executor.start",
    "  fenced.block say !backend_unavailable",
  ]);
  expect(recorder.text()).not.toContain("The backend is gone");
});

it("marks an invalid call", async () => {
  await using executor = new ScriptedExecutor();
  await expect(executor.executeCodeBlocks([])).rejects.toThrow('"blocks" is empty');
  expect(recorder.tree()).toEqual(["fenced.run !invalid_input"]);
});

it("records a run and a block for each call that waits for its turn", async () => {
  await using executor = new ScriptedExecutor({ stateful: true });
  await executor.start();
  recorder.reset();
  const first = executor.executeCodeBlocks([{ language: "wait", code: "x" }], { timeoutMs: 100 });
  const second = executor.executeCodeBlocks([{ language: "say", code: "y" }]);
  await Promise.all([first, second]);
  expect(recorder.tree()).toEqual(["fenced.run", "  fenced.block wait !timeout", "fenced.run", "  fenced.block say"]);
  // In the order of their ends: the second block would end at once if it did not wait.
  const ended = recorder.spans.map(({ name }) => name);
  expect(ended).toEqual(["fenced.block wait", "fenced.run", "fenced.block say", "fenced.run"]);
});
