// Streams a model's work with an executor to a web page that uses the AI SDK's `useChat`.
// needs: python3
import assert from "node:assert/strict";
// #region server
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { codeExecutionTool } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { convertToModelMessages, stepCountIs, streamText, type UIMessage } from "ai";
// #endregion
import { startOpenAIServer } from "./support/model-server.ts";

const code = "import time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two')";
const call = { id: "call-1", name: "execute_code", arguments: JSON.stringify({ language: "python", code }) };
await using model = await startOpenAIServer([{ toolCalls: [call] }, { text: "It counted to two." }]);
Object.assign(process.env, { OPENAI_BASE_URL: model.baseURL });

// #region server
const baseURL = process.env["OPENAI_BASE_URL"] ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });
const executor = new LocalCommandLineCodeExecutor(); // for one user; @fenced/pool has one per user
const tools = { execute_code: codeExecutionTool(executor, { imagesToModel: false }) };

/** Answers `useChat`. Works with Next.js, Hono and everything else that uses `Request` and `Response`. */
async function chat(request: Request): Promise<Response> {
  const { messages } = (await request.json()) as { messages: UIMessage[] };
  const result = streamText({
    model: service("qwen3"),
    messages: await convertToModelMessages(messages, { tools }),
    tools,
    stopWhen: stepCountIs(5),
    abortSignal: request.signal, // if the client leaves, the program is killed
  });
  return result.toUIMessageStreamResponse();
}
// #endregion

const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Count to two." }] }];
const request = new Request("http://localhost/chat", { method: "POST", body: JSON.stringify({ messages }) });
const text = await (await chat(request)).text();
assert.match(text, /"output":"one\\n"/);
assert.match(text, /"output":"one\\ntwo\\n"/);
assert.match(text, /It counted to two\./);
await executor.stop();
