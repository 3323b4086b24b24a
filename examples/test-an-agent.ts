// Tests an agent without a model: its answers are a script, and everything else is real. Node's test runner; any other works, too.
import assert from "node:assert/strict";
import { test } from "node:test";
// #region test
import { CodeExecutorAgent } from "@fenced/agentchat";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import { ReplayChatCompletionClient } from "@fenced/model-replay";

await test("an agent repairs its program", async () => {
  const decision = JSON.stringify({ retry: true, reason: "It divides by zero." });
  const answers = ["```python\nprint(1 / 0)\n```", decision, "```python\nprint(6 * 7)\n```", "The answer is 42."];
  const modelClient = new ReplayChatCompletionClient({ answers });
  await using codeExecutor = new WasmCodeExecutor({ timeoutMs: 10_000 });
  const agent = new CodeExecutorAgent({ name: "solver", modelClient, codeExecutor, maxRetriesOnError: 1 });

  const { messages } = await agent.run({ task: "What is six times seven?" });

  const runs = messages.filter((message) => message.type === "CodeExecutionEvent").map(({ result }) => result);
  assert.deepEqual(
    runs.map(({ exitCode }) => exitCode),
    [1, 0],
  );
  assert.match(runs[0]?.output ?? "", /ZeroDivisionError/);
  assert.equal(runs[1]?.output, "42\n");
});
// #endregion
