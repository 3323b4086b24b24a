// Offers Python and JavaScript functions that the code can import.
// needs: python3, node
import assert from "node:assert/strict";
// #region functions
import { createHash } from "node:crypto";
import { Alias, ImportFromModule, withRequirements } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

const median = withRequirements({ globalImports: [new Alias("statistics", "stats")] })(`
  def median(numbers: list[float]) -> float:
      """The middle of some numbers."""
      return stats.median(numbers)
`);

const fingerprint = withRequirements({ globalImports: [new ImportFromModule("node:crypto", ["createHash"])] })(
  function fingerprint(text: string) {
    return createHash("sha256").update(text).digest("hex").slice(0, 8);
  },
);

await using executor = new LocalCommandLineCodeExecutor({ functions: [median, fingerprint] });
const result = await executor.executeCodeBlocks([
  { language: "python", code: "from functions import median\nprint(median([3, 1, 2]))" },
  { language: "javascript", code: 'import { fingerprint } from "functions";\nconsole.log(fingerprint("fence"));' },
]);
console.log(result.output); // 2, and the first digits of a hash
console.log(executor.formatFunctionsForPrompt()); // tells a model what it can import
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.output, `2\n${createHash("sha256").update("fence").digest("hex").slice(0, 8)}\n`);
assert.match(executor.formatFunctionsForPrompt(), /def median\(numbers: list\[float\]\) -> float:/);
