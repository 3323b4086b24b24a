// Runs the code in a model's answer as a process on this machine.
// needs: python3
import assert from "node:assert/strict";
// #region model-answer
import { extractCodeBlocks } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

const answer = "I let Python count them:\n\n```python\nprint(sum(n % 7 == 0 for n in range(1000)))\n```\n";

await using executor = new LocalCommandLineCodeExecutor({ timeoutMs: 10_000 });
const result = await executor.executeCodeBlocks(extractCodeBlocks(answer));
console.log(result.exitCode, result.output); // 0 "143\n"
// #endregion

assert.equal(result.exitCode, 0);
assert.equal(result.output, "143\n");
