import { describe, expect, it } from "vitest";
import { SupervisedRuns } from "../../src/supervisor/runs/supervised-runs.ts";
import { frameType } from "../../src/supervisor/wire/wire.ts";

const number = 7;

/** Submitted runs of a supervisor that the test plays. */
function played(): SupervisedRuns {
  return new SupervisedRuns(() => true, {
    newNumber: () => 1,
    isLoaded: true,
    lose: () => {},
    isCut: () => false,
  });
}

/** A part of an entry: 1 MiB of it. */
function part(isLast: boolean): Buffer {
  const payload = Buffer.alloc(10 + 1_048_576);
  payload.write("o", 8);
  payload.writeUInt8(isLast ? 1 : 0, 9);
  return payload;
}

describe("a forged supervisor cannot fill memory", () => {
  it.each([
    ["an entry that never ends", part(false), /more than 268435456 bytes/],
    ["entries that nobody reads", part(true), /more of a run than it was asked for/],
  ])("with %s", (_, payload, problem) => {
    const runs = played();
    void runs.follow(number).next();
    expect(() => {
      for (let count = 0; count < 1000; count += 1) runs.report(frameType.runEntry, number, payload);
    }).toThrow(problem);
  });

  it("with a call that never ends, or too many of them", () => {
    const call = (key: number, bytes: number): Buffer => {
      const payload = Buffer.alloc(13 + bytes);
      payload.writeBigUInt64BE(BigInt(key), 0);
      return payload;
    };
    for (const [bytes, isOne, problem] of [
      [1_048_576, true, /more than 2097152 bytes/],
      [0, false, /more calls than it can have/],
    ] as const) {
      const runs = played();
      runs.serve(number, 0, () => {});
      expect(() => {
        for (let count = 0; count < 10_000; count += 1) {
          runs.report(frameType.runCall, number, call(isOne ? 1 : count, bytes));
        }
      }).toThrow(problem);
    }
  });
});
