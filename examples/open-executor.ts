// Opens the strongest fence that this machine has: a container, else an OS sandbox, else WebAssembly.
import assert from "node:assert/strict";
// #region open-executor
import { openExecutor } from "@fenced/executor-auto";

await using executor = await openExecutor("auto", { timeoutMs: 10_000 });
console.log(executor.fence.reason); // The code runs in a container of Docker or Podman.
const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
console.log(result.exitCode, result.output); // 0 "42\n"
// #endregion

assert.equal(result.output, "42\n");
assert.notEqual(executor.capabilities.isolation, "none");
