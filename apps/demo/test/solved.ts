import { expect } from "vitest";
import { differences } from "./penguins.ts";
import type { DemoOutcome } from "./run-demo.ts";

/** The turns of a chat that succeeded: speaker, exit code and text. */
export function turnsOf({ exitCode, stdout, stderr }: DemoOutcome): string[][] {
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^The coder is a recording; its code runs for real\. Go live with OPENAI_API_KEY .*\n/m);
  // Live output is printed above the turn that shows how the program ended.
  const told = stdout.replaceAll(/^-+ runner \(output\) -+\n([^]*?)^(-+ runner \(exit code \d+\) -+)\n/gm, "$2\n$1");
  const turns = told.split(/^-+ (\w+)(?: \(exit code (\d+)\))? -+$/m).slice(1);
  return Array.from({ length: turns.length / 3 }, (_, index) => turns.slice(3 * index, 3 * index + 3));
}

/** What the demo promises for every language and place. */
export function expectSolved(outcome: DemoOutcome, failure: string): void {
  const said = turnsOf(outcome);
  expect(said.map(([who, exit]) => [who, exit])).toEqual([
    ["user", undefined],
    ["coder", undefined],
    ["runner", "1"],
    ["coder", undefined],
    ["runner", "0"],
    ["coder", undefined],
    ["Summary", undefined],
  ]);
  expect(said[2]?.[2]).toContain(failure);
  expectAnswer(said[4]?.[2] ?? "", said[5]?.[2] ?? "");
  expect(said[6]?.[2]).toMatch(/Messages: 6\n[^]*"TERMINATE"/);
}

/** The output of the code and the answer of the coder must both agree with the data. */
export function expectAnswer(output: string, answer: string): void {
  const all = differences();
  expect(all).toHaveLength(3);
  for (const { species, grams, percent } of all) {
    expect(output).toMatch(new RegExp(`^${species}: .*\\+${grams.toFixed(1)} g \\(${percent.toFixed(1)}%\\)$`, "m"));
    expect(answer).toContain(`${percent.toFixed(1)}%`);
  }
  const [first] = all;
  expect(answer).toContain(`The ${first?.species} penguins`);
  expect(answer).toContain(`${first?.grams.toFixed(1)} g`);
  expect(output).toContain("Used: 333 of 344 penguins");
}
