// Keeps Python variables between blocks in a container, and forks the session to try something without changing them.
// needs: docker
import assert from "node:assert/strict";
// #region stateful
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region stateful
await using executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "python:3-slim",
  network: "none",
  stateful: true,
});
await executor.executeCodeBlocks([{ language: "python", code: "rows = [3, 1, 2]" }]);

// A second executor with the same variables, in milliseconds.
await using fork = await executor.fork();
const tried = await fork.executeCodeBlocks([{ language: "python", code: "rows.sort()\nrows" }]);
const kept = await executor.executeCodeBlocks([{ language: "python", code: "rows" }]);
console.log(tried.output, kept.output); // "[1, 2, 3]\n" "[3, 1, 2]\n"
// #endregion

assert.deepEqual([tried.output, kept.output], ["[1, 2, 3]\n", "[3, 1, 2]\n"]);
