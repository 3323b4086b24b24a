// Runs code in an OS sandbox, without Docker.
// needs: python3, bash, bubblewrap
import assert from "node:assert/strict";
// #region os-sandbox
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region os-sandbox
await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", workDir: "coding" });
const result = await executor.executeCodeBlocks([
  { language: "bash", code: "ls -A ~; cat /etc/shadow; curl https://example.com" },
]);
console.log(result.exitCode, result.output); // an empty home, no passwords, no network
// #endregion

assert.notEqual(result.exitCode, 0);
assert.match(result.output, /No such file or directory/);
