import { expect, it } from "vitest";
import { ExampleCodeExecutor } from "../src/index.ts";

// Tests of what is special to this executor. The conformance suite covers what all executors do.
it("runs each block in a process of its own, in its workspace", async () => {
  await using executor = new ExampleCodeExecutor();
  await executor.files.write("data.txt", "from outside");
  const code = 'import { readFileSync } from "node:fs"; console.log(readFileSync("data.txt", "utf8"), process.pid);';
  const blocks = [1, 2].map(() => ({ language: "javascript", code }));
  const { exitCode, output } = await executor.executeCodeBlocks(blocks);
  const lines = output.trim().split("\n");
  expect(exitCode).toBe(0);
  expect(lines.map((line) => line.replace(/ \d+$/, ""))).toEqual(["from outside", "from outside"]);
  expect(new Set(lines).size).toBe(2);
});
