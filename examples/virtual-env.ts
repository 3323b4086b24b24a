// Runs Python in a virtual environment.
// needs: python3
import assert from "node:assert/strict";
import { realpath } from "node:fs/promises";
// #region virtual-env
import { createVirtualEnv, LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region virtual-env
const virtualEnv = await createVirtualEnv(".venv");
await using executor = new LocalCommandLineCodeExecutor({ virtualEnv });
const result = await executor.executeCodeBlocks([{ language: "python", code: "import sys; print(sys.prefix)" }]);
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(await realpath(result.output.trim()), await realpath(virtualEnv));
