import { describe, expect, it } from "vitest";
import { testCodeExecutor } from "../src/index.ts";
import { localSubject } from "./local-subject.ts";
import { collectCases } from "./run-case.ts";

describe("the suite", () => {
  it("is defined without making an executor", () => {
    const cases = collectCases({
      ...localSubject,
      create: () => {
        throw new Error("must not be called");
      },
    });
    expect(cases.size).toBeGreaterThan(200);
  });

  it("has a name of its own for each case", () => {
    let defined = 0;
    const names = collectCases(localSubject);
    const count = { describe: (_name: string, define: () => void) => define(), it: () => defined++ };
    testCodeExecutor(count, localSubject);
    expect(names.size).toBe(defined);
  });

  it("fails all cases, and skips none, when the executor cannot be made", async () => {
    const reason = new Error("no such place");
    const cases = collectCases({ ...localSubject, create: () => Promise.reject(reason) });
    const skip = () => {
      throw new Error("must not be called");
    };
    for (const test of cases.values()) await expect(test({ skip })).rejects.toBe(reason);
  });
});
