// Gives a model of the Vercel AI SDK an executor as a tool, and shows what the code prints while it runs.
// needs: python3
import assert from "node:assert/strict";
// #region tool
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { codeExecutionTool } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { stepCountIs, streamText } from "ai";
// #endregion
import { startOpenAIServer } from "./support/model-server.ts";

const code = `
import time
print("thinking ...", flush=True)
time.sleep(0.5)
from math import comb
print(comb(49, 6))
`;
await using server = await startOpenAIServer([
  { toolCalls: [{ id: "call-1", name: "execute_code", arguments: JSON.stringify({ language: "python", code }) }] },
  { text: ["There are ", "13,983,816 ways."] },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });
const lines: string[] = [];
const { log } = console;
console.log = (line: string) => {
  lines.push(line);
  log(line);
};

// #region tool
const baseURL = process.env["OPENAI_BASE_URL"] ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });
await using executor = new LocalCommandLineCodeExecutor();

const { fullStream, text } = streamText({
  model: service("qwen3"),
  tools: { execute_code: codeExecutionTool(executor, { timeoutMs: 30_000, imagesToModel: false }) },
  stopWhen: stepCountIs(5),
  prompt: "How many ways are there to choose 6 of 49?",
});
for await (const part of fullStream) {
  if (part.type === "text-delta") process.stdout.write(part.text);
  if (part.type !== "tool-result" || part.dynamic === true) continue;
  if (part.output.status === "running") console.log(`... ${part.output.output}`);
  else if (part.preliminary !== true) console.log(`exit code ${part.output.exitCode}:\n${part.output.output}`);
}
// #endregion

assert.equal(await text, "There are 13,983,816 ways.");
assert.match(lines[0] ?? "", /^\.\.\. thinking \.\.\.$/m);
assert.equal(lines.at(-1), "exit code 0:\nthinking ...\n13983816\n");
const told = server.requests[1]?.body.messages.findLast(({ role }) => role === "tool");
assert.equal(told?.content, "thinking ...\n13983816\n");
