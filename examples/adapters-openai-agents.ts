// Runs an agent of OpenAI Agents JS in an OS sandbox, and keeps its files for a run that goes on later. The model is a script.
// needs: bubblewrap, python3
import assert from "node:assert/strict";
// #region agents
import { fencedSandboxClient } from "@fenced/adapters/openai-agents";
import { directoryStore } from "@fenced/checkpoints";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { run } from "@openai/agents";
import { SandboxAgent, shell } from "@openai/agents/sandbox";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents/testing";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
// #region agents
// A script in place of a model, for a try without one.
const command = functionCall("exec_command", { cmd: "python3 -c 'print(6 * 7)'" }, { callId: "1" });
const model = new ScriptedModel([[command], [assistantMessage("It is 42.")]]);

await using client = fencedSandboxClient({
  createExecutor: ({ restore }) =>
    new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", ...(restore && { restore }) }),
  snapshots: directoryStore("snapshots"), // for runs that are interrupted
});
const agent = new SandboxAgent({ name: "coder", model, capabilities: [shell()] });
const result = await run(agent, "How much is 6 * 7?", { sandbox: { client } });
console.log(result.finalOutput); // It is 42.
// #endregion

assert.equal(result.finalOutput, "It is 42.");
assert.match(JSON.stringify(result.history), /Process exited with code 0\\nOutput:\\n42/);
