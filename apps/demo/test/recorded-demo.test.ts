import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { dataFile } from "../src/default-task.ts";
import { differences } from "./penguins.ts";
import { pathWithNodeOnly, runDemo, temporaryFolder, type DemoOutcome } from "./run-demo.ts";

/** What the demo promises, whatever the language. */
function expectSolved({ exitCode, stdout, stderr }: DemoOutcome, failure: string): void {
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^The coder is a recording; its code runs for real\. Go live with OPENAI_API_KEY .*\n/);
  expect(stdout).toContain("without a sandbox");
  const turns = stdout.split(/^-+ (\w+)(?: \(exit code (\d+)\))? -+$/m).slice(1);
  const said = Array.from({ length: turns.length / 3 }, (_, index) => turns.slice(3 * index, 3 * index + 3));
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

/** What the code found out, and what the coder says, must both be what the data says. */
function expectAnswer(output: string, answer: string): void {
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

describe("the demo without a key", () => {
  it("fails on the data at first, then solves its task in Python, and leaves nothing", needs("python3"), async () => {
    const folder = await temporaryFolder();
    expectSolved(await runDemo([], { TMPDIR: folder }), "KeyError: None");
    expect(readdirSync(folder).filter((name) => name.startsWith("fenced-"))).toEqual([]);
  });

  it("does so in JavaScript where there is no Python", async () => {
    const outcome = await runDemo([], { PATH: await pathWithNodeOnly() });
    expect(outcome.stdout).toContain("```javascript");
    expectSolved(outcome, "TypeError: Cannot read properties of undefined");
  });

  it("stops at the limit, and says that there is no answer", async () => {
    const { exitCode, stdout, stderr } = await runDemo(["--max-messages", "3"]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain("The limit of 3 messages is reached");
    expect(stderr).toContain("--max-messages");
  });

  it("takes code that never ran for no answer, whatever the coder says", async () => {
    const record = join(await temporaryFolder(), "hasty.jsonl");
    const modelInfo = { family: "hasty", vision: false, functionCalling: true, structuredOutput: false };
    const content = "```javascript\nconsole.log(1);\n```\n\nTERMINATE";
    const result = { content, usage: { promptTokens: 0, completionTokens: 0 }, finishReason: "stop" };
    await writeFile(record, `${JSON.stringify({ version: 1, modelInfo, request: { messages: [] }, result })}\n`);
    const { exitCode, stderr } = await runDemo(["--replay", record, "--max-messages", "2"]);
    expect(stderr).toContain("The chat ended without an answer.");
    expect(exitCode).toBe(1);
  });
});

describe("the data", () => {
  it("is the published file, byte for byte", () => {
    const hash = createHash("sha256").update(readFileSync(dataFile)).digest("hex");
    expect(hash).toBe("0facf769609f1205b82cbceb8238c36af3e6147a0ca0e163902cc6281ce3e917");
    expect(readFileSync(new URL("../data/README.md", import.meta.url), "utf8")).toContain(hash);
  });
});
