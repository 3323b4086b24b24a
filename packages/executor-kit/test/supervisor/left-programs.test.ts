import { describe, expect, it } from "vitest";
import { readLabel } from "../../src/processes/process-options.ts";
import { LeftPrograms } from "../../src/supervisor/blocks/left-programs.ts";

const told = { command: "sleep 1", cwd: "a", startedAt: 1, pty: false };

describe("a supervisor that lies about the programs of an earlier host", () => {
  it.each([
    ["a long command", { command: "x".repeat(5000) }],
    ["a long argument", { command: ["x".repeat(5000)] }],
    ["many arguments", { command: Array.from({ length: 5000 }, () => "x") }],
    ["a long directory", { cwd: "x".repeat(5000) }],
    ["a time that no date can have", { startedAt: 8.7e15 }],
    ["a time before all others", { startedAt: -1 }],
  ])("describes none by %s", (_, lie) => {
    expect(readLabel(JSON.stringify(told))).toEqual({ ...told, startedAt: new Date(1) });
    expect(readLabel(JSON.stringify({ ...told, ...lie }))).toBeUndefined();
  });

  it("is not heard to the end", async () => {
    const left = new LeftPrograms(() => {}, { controls: () => ({}), follow: () => Promise.reject(new Error("no")) });
    const listed = left.list();
    const megabyte = Buffer.alloc(1_048_576, "x");
    const listAll = (): void => {
      for (let number = 0; number < 100; number += 1) left.report(number, megabyte);
    };
    expect(listAll).toThrow("the supervisor lists too many programs");
    left.fail(new Error("lost"));
    await expect(listed).rejects.toThrow("lost");
  });
});
