// Runs blocks in two languages, one after another, in one work directory.
// needs: python3, bash
import assert from "node:assert/strict";
// #region run
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region run
await using executor = new LocalCommandLineCodeExecutor({ workDir: "coding", timeoutMs: 30_000 });
const result = await executor.executeCodeBlocks([
  { language: "bash", code: "echo 1 2 3 > numbers.txt" },
  { language: "python", code: "print(sum(map(int, open('numbers.txt').read().split())))" },
]);
console.log(result.exitCode, result.output); // 0 "6\n"
// #endregion

assert.equal(result.exitCode, 0);
assert.equal(result.output, "6\n");
assert.equal(result.blocks.length, 2);
