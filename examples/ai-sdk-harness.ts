// Runs an agent of an AI SDK harness in an executor, stops it, and resumes it in another executor with the same files.
import assert from "node:assert/strict";
// #region harness
import { rm } from "node:fs/promises";
import type { HarnessV1 } from "@ai-sdk/harness";
import { HarnessAgent } from "@ai-sdk/harness/agent";
import { harnessSandbox } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";
import { shellHarness } from "./support/shell-harness.ts";

enterTemporaryDirectory();

// #region harness
const sandbox = harnessSandbox({
  // One per session: its directory is still there when the session resumes.
  createExecutor: ({ sessionId }) => new LocalCommandLineCodeExecutor({ workDir: `sessions/${sessionId}` }),
  destroy: (sessionId) => rm(`sessions/${sessionId}`, { recursive: true }),
});

/** @param harness - Claude Code, Codex, …: from packages of the AI SDK. */
async function takeNotes(harness: HarnessV1): Promise<string> {
  const agent = new HarnessAgent({ harness, sandbox });
  const session = await agent.createSession({ sessionId: "one" });
  await agent.generate({ session, prompt: "echo 3 unread > notes.txt" });
  const resumeFrom = await session.stop(); // plain data: another process can resume from it

  const later = await agent.createSession({ sessionId: "one", resumeFrom });
  const { text } = await agent.generate({ session: later, prompt: "cat notes.txt" });
  await later.destroy(); // and its files
  return text;
}
// #endregion

assert.equal(await takeNotes(shellHarness), "3 unread\n");
