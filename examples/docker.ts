// Runs blocks in a container without a network and with little memory.
// needs: docker
import assert from "node:assert/strict";
// #region docker
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region docker
await using executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "python:3-slim", // pulled if it is missing
  workDir: "coding",
  network: "none",
  memoryBytes: 256 * 1024 * 1024,
});
const result = await executor.executeCodeBlocks([
  { language: "bash", code: "echo 1 2 3 > numbers.txt" },
  { language: "python", code: "print(sum(map(int, open('numbers.txt').read().split())))" },
]);
console.log(result.exitCode, result.output); // 0 "6\n"
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.output, "6\n");
assert.deepEqual(await executor.files.list(), [{ path: "numbers.txt", size: 6 }]);
