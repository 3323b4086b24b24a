import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { restrictions } from "../src/interpreter/start-process.ts";

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, file), "utf8");

// What is possible for code that breaks out of Python into the JavaScript of its process: the same restrictions, with a program
// that has got there.
it("denies files, programs, threads, network, signals and new code to the JavaScript of the interpreter's process", () => {
  const program = `${read("../src/child/harden.mjs").replaceAll(/^export /gm, "")}\n${read("fixtures/realm-probe.mjs")}`;
  const flags = [
    ...restrictions([import.meta.dirname], process.versions.node),
    "--input-type=module",
    "--eval",
    program,
  ];
  const output = execFileSync(process.execPath, flags, { env: {}, encoding: "utf8" });
  const results = new Map(Object.entries(parsed(output)));
  expect(results.size).toBeGreaterThan(80);
  for (const [attempt, result] of results) {
    expect([attempt, result]).toEqual([attempt, attempt.startsWith("permission") ? "denied" : "impossible"]);
  }
});

function parsed(text: string): object {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error(text);
  return value;
}
