// A complete service that runs code for its users, in any number of replicas; ../production.ts starts three, uses them and replaces them.
// #region service
import { randomUUID } from "node:crypto";
import { CodeExecutorAgent, PendingApprovals } from "@fenced/agentchat";
import { directoryStore } from "@fenced/checkpoints";
import {
  type CodeBlock,
  type CodeExecutor,
  InvalidInputError,
  type RestoreOption,
  RunNotFoundError,
} from "@fenced/core";
import { eventStreamResponse, fileResponse, httpStatus, toJson } from "@fenced/core/web";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ExecutorPool, ExecutorSessions } from "@fenced/pool";
import { redisDirectory } from "@fenced/pool/redis";
import { serve } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { proxy } from "hono/proxy";
import { createClient } from "redis";

const image = process.env["SANDBOX_IMAGE"];
const maxUploadBytes = 100 * 1024 * 1024;
/** For bodies that are read as a whole. */
const small = bodyLimit({
  maxSize: 1024 * 1024,
  onError: (context) => context.json({ message: "The request is too large. Send at most 1 MiB." }, 413),
});
const limits = { timeoutMs: 60_000, totalTimeoutMs: 300_000, maxOutputBytes: 262_144 };

/** One executor per user: a container or, without an image and only for development, processes on this machine. */
function create(restore?: RestoreOption): CodeExecutor {
  if (image === undefined) return new LocalCommandLineCodeExecutor({ ...limits, restore });
  return new DockerCommandLineCodeExecutor({ ...limits, image, network: "none", memoryBytes: 268_435_456, restore });
}

const redis = createClient({ url: process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379" });
await redis.on("error", (error) => console.error(String(error))).connect();

/** Keeps two executors started for the next new users. */
const pool = new ExecutorPool({ create: () => create(), min: 2, max: 42, maxWaiting: 40 });
/** A user's session is in one replica, and moves to the one that gets the user's next request. */
const sessions = new ExecutorSessions({
  create: async (_user, signal, restore) => (restore ? create(restore) : (await pool.acquire({ signal })).executor),
  directory: redisDirectory(redis),
  checkpoints: directoryStore(process.env["CHECKPOINTS"] ?? "checkpoints"), // Or s3Store: all replicas need the same one.
  checkpointAfterRuns: true,
  idleTimeoutMs: 600_000,
  maxSessions: 40,
  maxWaiting: 4,
  onSessionLost: (user, reason) => console.error(`Session of ${user}: ${reason}`),
});

/** This replica, as the others reach it. */
const self = { id: randomUUID(), url: "" };

/** Remembers that a run or an approval is in the memory of this replica, unless another one has it. */
async function remember(name: string): Promise<void> {
  await redis.set(name, `${self.id} ${self.url}`, { condition: "NX", expiration: { type: "EX", value: 86_400 } });
}

/** Sends a request on to the replica that has the run or approval; `undefined` if this one has it, or nobody. */
async function elsewhere({ req }: Context, name: string): Promise<Response | undefined> {
  const [id, url] = (await redis.get(name))?.split(" ") ?? [];
  if (url === undefined || id === self.id) return undefined;
  const { pathname } = new URL(req.url);
  const answer = url === self.url ? undefined : await proxy(`${url}${pathname}`, req).catch(() => undefined);
  if (answer) return answer;
  const remedy = "See in your files what it has done, and submit it under a new id.";
  throw new RunNotFoundError("The run was lost with the process that had it", { remedy });
}

/** Users by token: put your own sign-in here. TOKENS is "secret-1=ann,secret-2=bob". */
const tokens = new Map((process.env["TOKENS"] ?? "").split(",").map((pair) => pair.split("=") as [string, string]));
/** The chats in progress, and whose they are: users can only answer for their own code. */
const chats = new Map<PendingApprovals, string>();
interface Variables {
  readonly Variables: { user: string };
}
const app = new Hono<Variables>();

const log = {
  onError(error: unknown): void {
    if (httpStatus(error) === 500) console.error(error);
  },
};

/** What a request sends as JSON. */
async function jsonOf<Kind>({ req }: Context): Promise<Kind> {
  return req.json<Kind>().catch((cause: unknown) => {
    throw new InvalidInputError("The request's body is not valid JSON", { remedy: "Send JSON.", cause });
  });
}

app.onError((error, context) => {
  log.onError(error);
  return context.json(toJson(error), httpStatus(error));
});

app.get("/health", (context) => {
  return context.json({ ...sessions.counts, ready: pool.counts.ready, chats: chats.size });
});

app.use(async (context, next) => {
  const user = tokens.get(context.req.header("authorization")?.replace(/^Bearer /, "") ?? "");
  if (user === undefined) return context.json({ message: "Sign in first." }, 401);
  context.set("user", user);
  return next();
});

function runName({ var: { user } }: Context<Variables>, id: string): string {
  return `run:${user}:${id}`;
}

// Runs blocks and streams their output. The run goes on if the page is closed, and is not repeated if the request is.
app.post("/runs", small, async (context) => {
  const id = context.req.header("idempotency-key") ?? randomUUID();
  await remember(runName(context, id));
  const other = await elsewhere(context, runName(context, id));
  if (other) return other;
  const blocks = await jsonOf<CodeBlock[]>(context);
  const run = await sessions.executor(context.var.user).submit(blocks, { id });
  return eventStreamResponse(run, { headers: { location: `/runs/${encodeURIComponent(run.id)}` }, ...log });
});

// What a page has missed of a run, and what comes.
app.get("/runs/:id", async (context) => {
  const other = await elsewhere(context, runName(context, context.req.param("id")));
  if (other) return other;
  const run = sessions.executor(context.var.user).run(context.req.param("id"));
  return eventStreamResponse(run, { request: context.req.raw, ...log });
});

app.delete("/runs/:id", async (context) => {
  const other = await elsewhere(context, runName(context, context.req.param("id")));
  if (other) return other;
  await sessions.executor(context.var.user).run(context.req.param("id")).cancel();
  return context.body(null, 204);
});

// Runs the code in a text, such as a model's answer, once the user has approved it.
app.post("/chats", small, async (context) => {
  const task = await context.req.text();
  return eventStreamResponse((signal) => chat(context.var.user, task, signal), log);
});

async function* chat(user: string, task: string, signal: AbortSignal) {
  const pendingApprovals = new PendingApprovals({ timeoutMs: 300_000 });
  const agent = new CodeExecutorAgent({ name: "runner", codeExecutor: sessions.executor(user), pendingApprovals });
  chats.set(pendingApprovals, user);
  try {
    for await (const event of agent.runStream({ task, signal })) {
      if ("type" in event && event.type === "CodeApprovalRequestEvent") await remember(`approval:${event.id}`);
      yield event;
    }
  } finally {
    chats.delete(pendingApprovals);
  }
}

app.post("/approvals/:id", small, async (context) => {
  const id = context.req.param("id");
  const other = await elsewhere(context, `approval:${id}`);
  if (other) return other;
  const waits = ({ pending }: PendingApprovals) => pending.some((request) => request.id === id);
  const [asked] = [...chats].find(([each, user]) => user === context.var.user && waits(each)) ?? [];
  if (!asked) throw new InvalidInputError("No code is waiting for this approval", { remedy: "Start a chat first." });
  asked.answer(id, await jsonOf(context));
  return context.body(null, 204);
});

app.put("/files/:path{.+}", async (context) => {
  const { body, headers } = context.req.raw;
  if (!(Number(headers.get("content-length") ?? Infinity) <= maxUploadBytes) || body === null) {
    throw new InvalidInputError("The upload has no length, or is too large", { remedy: "Send at most 100 MiB." });
  }
  await body.pipeTo(sessions.files(context.var.user).writeStream(context.req.param("path")));
  return context.body(null, 204);
});

app.get("/files/:path{.+}", (context) => {
  const request = context.req.raw;
  return fileResponse(sessions.files(context.var.user), context.req.param("path"), { request, ...log });
});

app.delete("/session", async (context) => {
  await sessions.end(context.var.user);
  return context.body(null, 204);
});

pool.start().catch((error: unknown) => log.onError(error));
const port = Number(process.env["PORT"] ?? 8080);
const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, (address) => {
  self.url = `http://127.0.0.1:${address.port}`;
  console.log(`Listening on ${self.url}`);
});

/**
 * Gives runs ten seconds to end, kills the rest, keeps all sessions for other replicas and removes all containers. The
 * process then exits because nothing is left to do.
 */
async function shutDown(): Promise<void> {
  server.close();
  await sessions.drain({ graceMs: Number(process.env["GRACE_MS"] ?? 10_000) });
  await pool.drain({ graceMs: 0 });
  redis.destroy();
  if ("closeAllConnections" in server) server.closeAllConnections();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void shutDown());
// #endregion
