// Two agents solve a task: one writes code, the other runs it.
import assert from "node:assert/strict";
// #region two-agents
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  AssistantAgent,
  CodeExecutorAgent,
  RoundRobinGroupChat,
  MaxMessageTermination,
  renderToConsole,
  TextMentionTermination,
} from "@fenced/agentchat";
import { openExecutor } from "@fenced/executor-auto";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";

const program = "def prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))\n\n";
await using server = await startOpenAIServer([
  { text: ["I count them:\n\n", "```python\n", program, "print(sum(map(prime, range(10_000))))\n```\n"] },
  { text: ["There are 1,229 primes below 10,000.\n\n", "TERMINATE"] },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });

// #region two-agents
const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL, includeUsage: true });
const modelClient = new AISDKChatCompletionClient({ model: service("qwen3") });
await using codeExecutor = await openExecutor("auto");

const systemMessage =
  "Write Python in a fence marked python: it is run, and you see what it prints. Say TERMINATE when the task is solved.";
const coder = new AssistantAgent({ name: "coder", modelClient, systemMessage, modelClientStream: true });
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"] });
const done = new TextMentionTermination("TERMINATE", { sources: ["coder"], unlessCode: true });
const terminationCondition = new MaxMessageTermination(10).or(done);
const team = new RoundRobinGroupChat({ participants: [coder, runner], terminationCondition });
const { messages, stopReason } = await renderToConsole(team.runStream({ task: "How many primes are below 10,000?" }));
// #endregion

assert.deepEqual(
  messages.map(({ source }) => source),
  ["user", "coder", "runner", "coder"],
);
const [, , output] = messages;
assert(output?.type === "TextMessage");
assert.equal(output.content, "1229\n");
assert.equal(stopReason, '"coder" mentioned "TERMINATE".');
