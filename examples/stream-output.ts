// Shows a program's output live.
// needs: bash
import assert from "node:assert/strict";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor();

// #region stream
const code = "for i in 1 2 3; do echo $i; sleep 0.2; done; echo 'that was all' >&2";
for await (const event of executor.streamCodeBlocks([{ language: "bash", code }])) {
  if (event.type === "stdout") process.stdout.write(event.text);
  if (event.type === "stderr") process.stderr.write(event.text);
  if (event.type === "result") console.log(`exit code ${event.result.exitCode}`);
}
// #endregion

// Output arrives before the program ends, and leaving the loop ends it: this one would take ten minutes.
let seen = "";
for await (const event of executor.streamCodeBlocks([{ language: "bash", code: "echo ready; sleep 600" }])) {
  if (event.type === "stdout") seen += event.text;
  if (seen === "ready\n") break;
}
assert.equal(seen, "ready\n");
