// Gives tools of the Vercel AI SDK an executor as their sandbox, and a model access to the workspace's files.
// needs: python3
import assert from "node:assert/strict";
// #region sandbox
import { codeExecutionTool, fileTools, sandboxSession } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor();

// For AI SDK 7: generateText({ model, tools, prompt, experimental_sandbox: sandbox })
const sandbox = sandboxSession(executor);
await sandbox.writeTextFile({ path: "table.csv", content: "city,people\nOslo,709000\n" });
const { stdout } = await sandbox.run({ command: "tail -n +2 table.csv | cut -d , -f 1" });
console.log(stdout); // Oslo

// For a model, with any version: list_files, read_file and write_file next to execute_code.
const tools = { execute_code: codeExecutionTool(executor), ...fileTools(executor) };
// #endregion

assert.equal(stdout, "Oslo\n");
assert.deepEqual(Object.keys(tools), ["execute_code", "list_files", "read_file", "write_file"]);
