// Shows the output of an agent's program while it runs.
// needs: python3
import assert from "node:assert/strict";
import { CodeExecutorAgent } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using codeExecutor = new LocalCommandLineCodeExecutor();
const seen: string[] = [];

// #region live-output
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
const code = "import time\nfor step in (1, 2, 3):\n    print('step', step, flush=True)\n    time.sleep(0.2)";
for await (const item of runner.runStream({ task: `\`\`\`python\n${code}\n\`\`\`` })) {
  if (!("type" in item) || item.type !== "CodeOutputEvent") continue;
  process.stdout.write(item.text);
  seen.push(item.text);
}
// #endregion

assert.equal(seen.join(""), "step 1\nstep 2\nstep 3\n");
