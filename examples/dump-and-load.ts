// Saves a team's settings as JSON, and creates the team again from them.
// needs: python3
import assert from "node:assert/strict";
// #region dump-and-load
import { readFile, writeFile } from "node:fs/promises";
import { CodeExecutorAgent, RoundRobinGroupChat } from "@fenced/agentchat";
import { loadComponent } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();

// #region dump-and-load
const codeExecutor = new LocalCommandLineCodeExecutor({ timeoutMs: 5000, workDir: "coding" });
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
const team = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
await writeFile("team.json", JSON.stringify(team.dumpComponent()));

await using loaded = await loadComponent<RoundRobinGroupChat>(JSON.parse(await readFile("team.json", "utf8")));
const { messages } = await loaded.run({ task: "```python\nprint(6 * 7)\n```" });
// #endregion

const [, answer] = messages;
assert(answer?.type === "TextMessage");
assert.equal(answer.content, "42\n");
assert.deepEqual(loaded.dumpComponent(), team.dumpComponent());

// A config file cannot import arbitrary packages.
const foreign = { provider: "left-pad:Executor", componentType: "code_executor", version: 1, config: {} };
await assert.rejects(loadComponent(foreign), /outside the @fenced\/ scope and not allowed/);
