// A session that outlives its program: another one connects to it, with its files, variables and what blocks left running.
// needs: docker
import assert from "node:assert/strict";
// #region keep-alive
import { readFile, writeFile } from "node:fs/promises";
import { connectExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region keep-alive
const executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "python:3-slim",
  stateful: true,
  keepAliveMs: 600_000,
});
await executor.executeCodeBlocks([{ language: "python", code: "rows = [3, 1, 2]" }]);
await writeFile("session.json", JSON.stringify(executor.handle), { mode: 0o600 }); // It contains the session's key.
await executor.detach(); // Or the program dies, even by kill -9.

// In another program, on any machine that reaches the same daemon:
await using again = await connectExecutor(JSON.parse(await readFile("session.json", "utf8")));
const { output } = await again.executeCodeBlocks([{ language: "python", code: "sum(rows)" }]);
console.log(output); // "6\n"
// #endregion

assert.equal(output, "6\n");
