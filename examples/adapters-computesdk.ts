// Makes Fenced's executors the sandboxes of ComputeSDK.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region computesdk
import { createCompute } from "@computesdk/provider";
import { fencedCompute } from "@fenced/adapters/computesdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion

const lines: string[] = [];
const { log } = console;
console.log = (line: string) => {
  lines.push(line);
  log(line);
};

// #region computesdk
await using provider = fencedCompute({
  createExecutor: () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }),
});
const compute = createCompute({ defaultProvider: provider });
const sandbox = await compute.sandbox.create({ envs: { GREETING: "hello" } });
await sandbox.filesystem.writeFile("/workspace/hi.py", "import os; print(os.environ['GREETING'])");
console.log((await sandbox.runCommand("python3 hi.py")).stdout.trim());
await sandbox.destroy();
// #endregion
assert.deepEqual(lines, ["hello"]);
