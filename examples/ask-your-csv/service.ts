// #region service
import { readFile } from "node:fs/promises";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { CodeExecutorAgent, PendingApprovals } from "@fenced/agentchat";
import { InvalidInputError } from "@fenced/core";
import { eventStreamResponse, fileResponse, httpStatus, toJson } from "@fenced/core/web";
import { openExecutor } from "@fenced/executor-auto";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { csrf } from "hono/csrf";
import { HTTPException } from "hono/http-exception";

const service = createOpenAICompatible({
  name: "service",
  baseURL: process.env["OPENAI_BASE_URL"] ?? "http://localhost:11434/v1",
  ...(process.env["OPENAI_API_KEY"] === undefined ? {} : { apiKey: process.env["OPENAI_API_KEY"] }),
});
const modelClient = new AISDKChatCompletionClient({ model: service(process.env["MODEL"] ?? "qwen3") });

// The strongest fence of this machine, without a network: the code reads what you upload, and nothing else.
const executor = await openExecutor("auto", { network: "none", timeoutMs: 60_000 });
const pendingApprovals = new PendingApprovals({ timeoutMs: 600_000 });

const systemMessage = `You answer questions about CSV files in the current directory.
Write one Python program in a fence marked python. It may use only the standard library. It is run, and you see what it prints.
If a chart helps, let the program write it as chart.svg, and put other results that are worth keeping into files.
When you have the answer, give it in one or two sentences, without code.`;
const analyst = new CodeExecutorAgent({
  name: "analyst",
  modelClient,
  systemMessage,
  codeExecutor: executor,
  pendingApprovals,
  maxRetriesOnError: 2,
});

const app = new Hono();
// Other websites in the same browser can neither send forms here, nor reach it under a name of theirs.
app.use(csrf());
app.use(async (context, next) => {
  const host = context.req.header("host") ?? "";
  return /^(127\.0\.0\.1|localhost)(:\d+)?$/.test(host) ? next() : context.text("Unknown host", 403);
});
app.onError((error, context) => {
  if (error instanceof HTTPException) return error.getResponse();
  if (httpStatus(error) === 500) console.error(error);
  return context.json(toJson(error), httpStatus(error));
});

app.get("/", async (context) => context.html(await readFile(new URL("page.html", import.meta.url), "utf8")));

app.get("/files", async (context) => {
  const files = await executor.files.list();
  return context.json(files.map(({ path, size }) => ({ path, size })));
});

app.put("/files/:path{.+}", async (context) => {
  const { body } = context.req.raw;
  if (body === null) throw new InvalidInputError("The upload is empty", { remedy: "Choose a file with content." });
  await body.pipeTo(executor.files.writeStream(context.req.param("path")));
  return context.body(null, 204);
});

app.get("/files/:path{.+}", (context) =>
  fileResponse(executor.files, context.req.param("path"), { request: context.req.raw }),
);

// Streams what the analyst does: its text, the code that waits for approval, what the program prints, the answer.
app.post("/questions", async (context) => {
  const { question } = await context.req.json<{ question: string }>();
  return eventStreamResponse((signal) => analyst.runStream({ task: question, outputTaskMessages: false, signal }));
});

app.post("/approvals/:id", async (context) => {
  pendingApprovals.answer(context.req.param("id"), await context.req.json());
  return context.body(null, 204);
});

const port = Number(process.env["PORT"] ?? 8080);
const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, (address) => {
  console.log(`Open http://127.0.0.1:${address.port}. ${executor.fence.reason}`);
});
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
    void executor.stop();
  });
}
// #endregion
