// Saves a team in the middle of its work, and continues with another one.
// needs: python3
import assert from "node:assert/strict";
// #region save-and-resume
import { readFile, writeFile } from "node:fs/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AssistantAgent, CodeExecutorAgent, RoundRobinGroupChat, TextMentionTermination } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await using server = await startOpenAIServer([
  { text: "```python\nprint(12 ** 12)\n```" },
  { text: "It is 8,916,100,448,256. TERMINATE" },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });

// #region save-and-resume
const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });
await using codeExecutor = new LocalCommandLineCodeExecutor();

function createTeam(): RoundRobinGroupChat {
  const modelClient = new AISDKChatCompletionClient({ model: service("qwen3") });
  const coder = new AssistantAgent({ name: "coder", modelClient });
  const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
  const terminationCondition = new TextMentionTermination("TERMINATE", { sources: ["coder"] });
  return new RoundRobinGroupChat({ participants: [coder, runner], terminationCondition, maxTurns: 1 });
}

const team = createTeam();
await team.run({ task: "What is 12 to the power of 12?" }); // one turn: the coder writes code
await writeFile("team.json", JSON.stringify(await team.saveState()));

const successor = createTeam(); // after a restart, for example
await successor.loadState(JSON.parse(await readFile("team.json", "utf8")));
const executed = await successor.run(); // no task: it continues with the runner
const answered = await successor.run();
// #endregion

assert.deepEqual(
  [...executed.messages, ...answered.messages].map((message) => [
    message.source,
    "content" in message && message.content,
  ]),
  [
    ["runner", "8916100448256\n"],
    ["coder", "It is 8,916,100,448,256. TERMINATE"],
  ],
);
assert.equal(server.requests[1]?.body.messages.at(-1)?.content, "runner said:\n8916100448256\n");
