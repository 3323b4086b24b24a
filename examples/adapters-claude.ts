// Serves sessions of Claude's managed agents, each in an OS sandbox of its own. Their API is a server in this process.
// needs: bubblewrap, python3
import assert from "node:assert/strict";
// #region worker
import Anthropic from "@anthropic-ai/sdk";
import { fencedToolset } from "@fenced/adapters/claude";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { ClaudeAgentsApi } from "@fenced/test-support/claude-agents-api";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await using api = await ClaudeAgentsApi.start();
Object.assign(process.env, {
  ANTHROPIC_BASE_URL: api.url,
  ANTHROPIC_ENVIRONMENT_ID: "env",
  ANTHROPIC_ENVIRONMENT_KEY: "key",
});
api.enqueue("session-1");
const answered = api.call("session-1", "bash", { command: "python3 -c 'print(6 * 7)'" });
void answered.then(() => process.emit("SIGTERM"));

// #region worker
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

await using tools = fencedToolset({
  createExecutor: () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }),
});
const worker = new Anthropic().beta.environments.work.worker({
  environmentId: process.env["ANTHROPIC_ENVIRONMENT_ID"] ?? "",
  environmentKey: process.env["ANTHROPIC_ENVIRONMENT_KEY"] ?? "",
  tools, // in place of the SDK's own, which work on this host
});
await worker.run(stopping.signal).catch((error: unknown) => {
  if (!stopping.signal.aborted) throw error;
});
// #endregion

assert.deepEqual(await answered, { isError: false, text: "42" });
