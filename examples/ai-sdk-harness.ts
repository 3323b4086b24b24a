// Runs an agent of the AI SDK's harnesses in an executor; it stops, and goes on in another one with the same files.
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
  // One for each session: what is in a directory of that name is there again when the session goes on.
  createExecutor: ({ sessionId }) => new LocalCommandLineCodeExecutor({ workDir: `sessions/${sessionId}` }),
  destroy: (sessionId) => rm(`sessions/${sessionId}`, { recursive: true }),
});

/** @param harness - Claude Code, Codex, …: packages of the AI SDK have them. */
async function takeNotes(harness: HarnessV1): Promise<string> {
  const agent = new HarnessAgent({ harness, sandbox });
  const session = await agent.createSession({ sessionId: "one" });
  await agent.generate({ session, prompt: "echo 3 unread > notes.txt" });
  const resumeFrom = await session.stop(); // data: another process can go on with it

  const later = await agent.createSession({ sessionId: "one", resumeFrom });
  const { text } = await agent.generate({ session: later, prompt: "cat notes.txt" });
  await later.destroy(); // the files, too
  return text;
}
// #endregion

assert.equal(await takeNotes(shellHarness), "3 unread\n");
