// Runs one block of code that a model wrote behind this machine's strongest fence.
import assert from "node:assert/strict";
// #region first-lines
import { openExecutor } from "@fenced/executor-auto";

await using executor = await openExecutor("auto"); // a container, otherwise an OS sandbox, otherwise WebAssembly
const code = "print(sum(n % 7 == 0 for n in range(1000)))"; // what the model wrote
const { exitCode, output } = await executor.executeCodeBlocks([{ language: "python", code }]);
// #endregion
assert.deepEqual({ exitCode, output }, { exitCode: 0, output: "143\n" });
