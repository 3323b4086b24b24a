// Ends programs with a time limit and with an abort.
// needs: bash
import assert from "node:assert/strict";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor();

// #region time-limit
const slow = { language: "bash", code: "echo on it; sleep 600" };
const result = await executor.executeCodeBlocks([slow], { timeoutMs: 5000 });
console.log(result.exitCode, result.timedOut, result.output); // 124 true "on it\n"
// #endregion

assert.equal(result.exitCode, 124);
assert.equal(result.timedOut, true);
assert.equal(result.output, "on it\n");

// #region abort
const user = new AbortController();
setTimeout(() => user.abort(new Error("the user pressed Escape")), 500);
try {
  await executor.executeCodeBlocks([slow], { signal: user.signal });
} catch (error) {
  console.log(error === user.signal.reason); // true, and nothing is running any more
}
// #endregion

assert.equal(user.signal.aborted, true);
await assert.rejects(executor.executeCodeBlocks([slow], { signal: user.signal }), /the user pressed Escape/);
