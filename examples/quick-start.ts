// Runs the code in a model's answer behind this machine's strongest fence: a container, an OS sandbox or WebAssembly.
import assert from "node:assert/strict";
// #region quick-start
import { extractCodeBlocks } from "@fenced/core";
import { openExecutor } from "@fenced/executor-auto";

const answer = "I let Python count them:\n\n```python\nprint(sum(n % 7 == 0 for n in range(1000)))\n```\n";

await using executor = await openExecutor("auto", { timeoutMs: 10_000 });
console.log(executor.fence.reason); // The code runs in a Docker or Podman container.
const result = await executor.executeCodeBlocks(extractCodeBlocks(answer));
console.log(result.exitCode, result.output); // 0 "143\n"
// #endregion

assert.equal(result.output, "143\n");
assert.notEqual(executor.capabilities.isolation, "none");
