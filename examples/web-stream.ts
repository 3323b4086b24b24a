// Streams what a model does with an executor into a web page: a node:http server, the AI SDK's UI message stream, and a client
// that reads it; when the client leaves, the program is killed.
// needs: python3
import assert from "node:assert/strict";
import { once } from "node:events";
// #region server
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { codeExecutionTool } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { convertToModelMessages, stepCountIs, streamText, type UIMessage } from "ai";
// #endregion
import { hasEnded, isAlive } from "./support/is-alive.ts";
import { startOpenAIServer } from "./support/model-server.ts";

const callWith = (code: string) => ({
  toolCalls: [{ id: "call-1", name: "execute_code", arguments: JSON.stringify({ language: "python", code }) }],
});
await using model = await startOpenAIServer([
  callWith("import time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two')"),
  { text: "It counted to two." },
  callWith("import os, time\nprint('process', os.getpid(), flush=True)\ntime.sleep(600)"),
]);
Object.assign(process.env, { OPENAI_BASE_URL: model.baseURL });

// #region server
const baseURL = process.env["OPENAI_BASE_URL"] ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });

const server = createServer((request, response) => {
  const left = new AbortController();
  response.once("close", () => left.abort()); // the page was closed, or all is sent
  void answer().catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));

  async function answer(): Promise<void> {
    const { messages } = (await json(request)) as { messages: UIMessage[] };
    await using executor = new LocalCommandLineCodeExecutor(); // one for each answer: users share no files
    const tools = { execute_code: codeExecutionTool(executor, { imagesToModel: false }) };
    const result = streamText({
      model: service("qwen3"),
      messages: await convertToModelMessages(messages, { tools }),
      tools,
      stopWhen: stepCountIs(5),
      abortSignal: left.signal,
    });
    await result.pipeUIMessageStreamToResponse(response);
  }
});
// #endregion

server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
assert.ok(typeof address === "object" && address !== null);
const url = `http://127.0.0.1:${address.port}/`;
const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Count to two." }] }];

/** Reads the stream as the AI SDK's `useChat` does: server-sent events, each of which is a JSON object. */
async function* chat(signal: AbortSignal): AsyncGenerator<{ type: string; output?: { output: string } }> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ messages }), signal });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const events = (text + chunk).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) if (event !== "data: [DONE]") yield JSON.parse(event.slice("data: ".length));
  }
}

// A client that stays sees the output grow, and then the model's answer.
const outputs: string[] = [];
const types = new Set<string>();
for await (const event of chat(new AbortController().signal)) {
  types.add(event.type);
  if (event.output !== undefined) outputs.push(event.output.output.replaceAll("\n", " ").trim());
}
console.log(outputs); // [ "one", "one two", … ]
assert.equal(outputs[0], "one");
assert.equal(outputs.at(-1), "one two");
assert.ok(types.has("text-delta") && types.has("finish"));

// A client that leaves takes the program with it.
const closed = new AbortController();
let pid = 0;
try {
  for await (const event of chat(closed.signal)) {
    pid = Number(/process (\d+)/.exec(event.output?.output ?? "")?.[1] ?? pid);
    if (pid === 0) continue;
    assert.ok(isAlive(pid));
    closed.abort();
  }
} catch (error) {
  assert.ok(closed.signal.aborted, String(error));
}
assert.ok(pid > 0 && (await hasEnded(pid)));
assert.equal(model.requests.length, 3);
server.close();
