// Gives a thread of TanStack AI a sandbox of its own, which is set up once and found again.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region tanstack
import { fencedProvider } from "@fenced/adapters/tanstack";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { defineSandbox, defineWorkspace } from "@tanstack/ai-sandbox";
// #endregion

const lines: string[] = [];
const { log } = console;
console.log = (line: string) => {
  lines.push(line);
  log(line);
};

// #region tanstack
await using provider = fencedProvider({
  createExecutor: () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }),
});
const coder = defineSandbox({
  id: "coder",
  provider,
  workspace: defineWorkspace({ source: { type: "none" }, setup: ["echo 6 > six.txt"] }),
});
const sandbox = await coder.ensure({ threadId: "thread-1", runId: "run-1" }); // `withSandbox(coder)` calls it for a chat
const { stdout } = await sandbox.process.exec("python3 -c \"print(7 * int(open('six.txt').read()))\"");
console.log(stdout.trim());
// #endregion
assert.deepEqual(lines, ["42"]);
