// Offers a Python function that needs a package, and installs the package.
// needs: python3, pip:tabulate
import assert from "node:assert/strict";
// #region packages
import { ImportFromModule, withRequirements } from "@fenced/core";
import { createVirtualEnv, LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region packages
const table = withRequirements({
  pythonPackages: ["tabulate>=0.9"],
  globalImports: [new ImportFromModule("tabulate", ["tabulate"])],
})(`
  def table(rows: list[dict]) -> str:
      """Lays rows out as a table."""
      return tabulate(rows, headers="keys")
`);

const virtualEnv = await createVirtualEnv(".venv"); // packages are installed there
await using executor = new LocalCommandLineCodeExecutor({ virtualEnv, functions: [table] });
const code =
  'from functions import table\nprint(table([{"fruit": "apple", "price": 3}, {"fruit": "pear", "price": 5}]))';
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.output);
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.deepEqual(
  result.stdout.split("\n").map((line) => line.split(/ +/).slice(0, 2)),
  [["fruit", "price"], ["-------", "-------"], ["apple", "3"], ["pear", "5"], [""]],
);

// A package that does not exist is an error with pip's reason, before any block runs.
const impossible = withRequirements({ pythonPackages: ["tabulate<0"] })("def f():\n    pass\n");
await using broken = new LocalCommandLineCodeExecutor({ virtualEnv, functions: [impossible] });
await assert.rejects(broken.executeCodeBlocks([{ language: "python", code: "print(1)" }]), {
  code: "function_setup_failed",
});
