import { makeCodeResult, type RecordedRun } from "@fenced/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RecordedCall } from "../../src/run/recorded-call.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const nothing = { displays: [], timedOut: false, truncated: false, stateLost: false };
const never = (): Promise<void> => new Promise(() => {});

it("does not wait for a record that never answers, and keeps the result", async () => {
  const call = new RecordedCall({ begin: never, add: never }, "AnExecutor", []);
  await Promise.all([
    expect(call.begin()).rejects.toThrow(/did not answer within 30 s/),
    vi.advanceTimersByTimeAsync(30_000),
  ]);
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const ending = call.end(makeCodeResult({ ...nothing, exitCode: 0, durationMs: 1, blocks: [] }));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await ending).toMatchObject({ exitCode: 0, unrecorded: expect.stringContaining("did not answer") });
  expect(warned).toHaveBeenCalledOnce();
  warned.mockRestore();
});

it("records a run that was aborted with a reason that cannot be shown", async () => {
  const runs: RecordedRun[] = [];
  const record = { begin: () => Promise.resolve(), add: (run: RecordedRun) => Promise.resolve(void runs.push(run)) };
  await new RecordedCall(record, "AnExecutor", []).fail(Object.create(null), undefined);
  expect(runs).toMatchObject([{ outcome: "rejected", error: "An error that cannot be shown" }]);
});
