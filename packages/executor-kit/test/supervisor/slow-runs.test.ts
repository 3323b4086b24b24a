import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SupervisedRuns } from "../../src/supervisor/runs/supervised-runs.ts";
import { frameType } from "../../src/supervisor/wire/wire.ts";

const run = 7;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A piece of what a run printed. */
function entry(number: number): Buffer {
  const head = Buffer.alloc(10);
  head.writeBigUInt64BE(BigInt(number));
  head.write("o", 8);
  head.writeUInt8(1, 9);
  return Buffer.concat([head, Buffer.from("x")]);
}

it("does not give up a session while what a cancelled run has printed arrives slowly", async () => {
  const losses: Error[] = [];
  const runs = new SupervisedRuns(() => {}, {
    newNumber: () => run,
    isLoaded: true,
    isCut: () => false,
    lose: (error) => losses.push(error),
  });
  const entries = runs.follow(run);
  void entries.next();
  runs.cancel(run);
  for (let piece = 1; piece <= 5; piece += 1) {
    await vi.advanceTimersByTimeAsync(7000);
    runs.report(frameType.runEntry, run, entry(piece));
  }
  expect(losses).toEqual([]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(losses).toHaveLength(1);
});
