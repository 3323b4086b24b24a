// Adds a language, and changes how another one runs.
// needs: bash
import assert from "node:assert/strict";
// #region languages
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor({
  languages: {
    awk: { extension: "awk", command: ["awk", "-f"] },
    bash: { extension: "sh", command: ["bash", "-euo", "pipefail"] },
  },
});
const computed = await executor.executeCodeBlocks([{ language: "awk", code: "BEGIN { print 6 * 7 }" }]);
const failed = await executor.executeCodeBlocks([{ language: "bash", code: "false\necho not reached" }]);
console.log(computed.output, failed.exitCode); // "42\n" 1
// #endregion

assert.equal(computed.output, "42\n");
assert.equal(failed.exitCode, 1);
assert.equal(failed.output, "");
