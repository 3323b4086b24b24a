// Serves a team to web pages, through the AI SDK's useChat and the AG-UI protocol.
// needs: python3
import assert from "node:assert/strict";
import { once } from "node:events";
// #region server
import type { RunAgentInput } from "@ag-ui/core";
import { CodeExecutorAgent, RoundRobinGroupChat, toAgUiEvents, toUIMessageStream } from "@fenced/agentchat";
import { eventStreamResponse } from "@fenced/core/web";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { serve } from "@hono/node-server";
import { createUIMessageStreamResponse, type UIMessage } from "ai";
import { Hono } from "hono";
// #endregion
import { askAsAgUi, askAsUseChat } from "./support/chat-clients.ts";

// #region server
const codeExecutor = new LocalCommandLineCodeExecutor(); // for one user; @fenced/pool has one per user
const app = new Hono();

/** One run of a team. The page already shows the user's message. */
function runTeam(task: string, signal: AbortSignal) {
  const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
  const team = new RoundRobinGroupChat({ participants: [runner], maxTurns: 1 });
  return team.runStream({ task, outputTaskMessages: false, signal });
}

// For useChat, with its own messages.
app.post("/chat", async (context) => {
  const { messages } = await context.req.json<{ messages: UIMessage[] }>();
  const task = (messages.at(-1)?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  return createUIMessageStreamResponse({ stream: toUIMessageStream(runTeam(task, context.req.raw.signal)) });
});

// For clients of AG-UI.
app.post("/agent", async (context) => {
  const { threadId, runId, messages } = await context.req.json<RunAgentInput>();
  const { content } = messages.at(-1) ?? {};
  const task = typeof content === "string" ? content : "";
  return eventStreamResponse((signal) => toAgUiEvents(runTeam(task, signal), { threadId, runId }));
});
const server = serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 0), hostname: "127.0.0.1" });
// #endregion

await once(server, "listening");
const address = server.address();
assert.ok(typeof address === "object" && address !== null);
const url = `http://127.0.0.1:${address.port}`;
const question = "```python\nprint(6 * 7)\n```";

const shown = await askAsUseChat(`${url}/chat`, question);
assert.deepEqual(shown?.parts.find((part) => part.type === "text")?.text, "42\n");
assert.ok(shown.parts.some((part) => part.type === "data-result"));

const events = await askAsAgUi(`${url}/agent`, question);
assert.deepEqual([events[0]?.type, events.at(-1)?.type], ["RUN_STARTED", "RUN_FINISHED"]);
assert.ok(JSON.stringify(events).includes(`"delta":${JSON.stringify("42\n")}`));

server.close();
await codeExecutor.stop();
