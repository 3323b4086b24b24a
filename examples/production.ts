// A complete service in three replicas: uploads, runs as server-sent events, approvals, quotas, a rolling restart without a loss.
// needs: python3, redis
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { InvalidInputError } from "@fenced/core";
import { readEventStream } from "@fenced/core/web";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { startRedis } from "@fenced/test-support/databases";
import { roundRobin } from "./production/proxy.ts";

const [node, ...program] = await bundledCommand(join(import.meta.filename, "../production/service.ts"));
const redis = await startRedis();
const checkpoints = await mkdtemp(join(tmpdir(), "production-"));

interface Replica {
  readonly process: ChildProcess;
  readonly url: string;
}

/** @param graceMs - how long it waits for what runs when it is to end. */
async function startReplica(graceMs: number, port = "0"): Promise<Replica> {
  const service = spawn(node, program, {
    env: {
      ...process.env,
      PORT: port,
      GRACE_MS: String(graceMs),
      TOKENS: "a-secret=ann,b-secret=bob",
      REDIS_URL: redis.url,
      CHECKPOINTS: checkpoints,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface(service.stdout), "line")) as [string];
  return { process: service, url: /http:\S+/.exec(line)?.[0] ?? "" };
}

async function stopReplica({ process: service }: Replica): Promise<void> {
  const exit = once(service, "exit");
  service.kill("SIGTERM");
  assert.deepEqual(await exit, [0, null]);
}

const replicas = await Promise.all([startReplica(30_000), startReplica(30_000), startReplica(30_000)]);
const proxy = roundRobin(replicas.map(({ url }) => url)).listen(0, "127.0.0.1");
await once(proxy, "listening");
const address = proxy.address();
const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;

function send(token: string, method: string, path: string, body?: string, to = url): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`${to}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
}
/** How many sessions or chats of all replicas are in a state. */
async function count(state: "chats" | "running"): Promise<number> {
  const texts = await Promise.all(replicas.map(async (each) => (await fetch(`${each.url}/health`)).text()));
  return texts.reduce((sum, text) => sum + Number(new RegExp(`"${state}":(\\d+)`).exec(text)?.[1]), 0);
}
const run = async (token: string, code: string, to = url): Promise<object[]> => {
  const events: object[] = [];
  const response = await send(token, "POST", "/runs", JSON.stringify([{ language: "python", code }]), to);
  for await (const event of readEventStream(response)) events.push(event);
  return events;
};

assert.equal((await send("wrong", "POST", "/runs", "[]")).status, 401);
const large = request(`${url}/runs`, {
  method: "POST",
  headers: { authorization: "Bearer a-secret", "content-length": 2 ** 21 },
});
large.flushHeaders();
assert.equal(((await once(large, "response")) as [IncomingMessage])[0].statusCode, 413);
large.destroy();
assert.equal((await send("a-secret", "PUT", "/files/data/in.txt", "21")).status, 204);
const result = await run("a-secret", "print(2 * int(open('data/in.txt').read())); open('out.txt', 'w').write('made')");
assert.match(JSON.stringify(result.at(-1)), /"output":"42\\n"/);
const made = await send("a-secret", "GET", "/files/out.txt");
assert.equal(await made.text(), "made");
assert.match(made.headers.get("content-disposition") ?? "", /^attachment; filename="out.txt"/);

// A page that is closed and opened again misses nothing, and a request that is sent twice runs nothing twice.
const counting = JSON.stringify([
  { language: "python", code: "import time\nfor n in range(4):\n    print(n, flush=True)\n    time.sleep(0.1)" },
]);
const begin = (): Promise<Response> =>
  fetch(`${url}/runs`, {
    method: "POST",
    headers: { authorization: "Bearer a-secret", "idempotency-key": "order 42" },
    body: counting,
  });
const begun = await begin();
for await (const event of readEventStream(begun)) if ("text" in event) break;
const where = begun.headers.get("location") ?? "";
const kept: string[] = [];
for await (const event of readEventStream(await send("a-secret", "GET", where))) {
  if ("text" in event) kept.push(String(event.text));
}
assert.equal(kept.join(""), "0\n1\n2\n3\n");
assert.equal((await begin()).headers.get("location"), where);
assert.equal((await send("b-secret", "GET", where)).status, 404); // not bob's
assert.equal((await send("a-secret", "POST", "/runs", "print(1)")).status, 400); // no JSON
assert.equal((await send("a-secret", "DELETE", where)).status, 204);

// Code that adds to a file while it is sent cannot write into the next response of the connection.
const adding = "f = open('log.txt', 'a')\nfor n in range(20000): f.write('HTTP/1.1 200 OK '); f.flush()";
// In another replica, the request for the file would wait for the end of the run.
const [{ url: near }] = replicas;
const added = run("a-secret", `open('log.txt', 'w').close()\n${adding}`, near);
for (let asked = 0, status = 404; asked < 50; status === 200 && asked++) {
  const log = await send("a-secret", "GET", "/files/log.txt", undefined, near);
  status = log.status;
  if (status === 200) assert.equal((await log.text()).length, Number(log.headers.get("content-length")));
}
await added;
assert.equal((await send("b-secret", "GET", "/files/out.txt")).status, 404); // not bob's
assert.equal((await send("a-secret", "GET", "/files/../../etc/passwd")).status, 404);

// Another request answers the request for approval, and only the same user may send it.
const texts: string[] = [];
for await (const event of readEventStream(
  await send("a-secret", "POST", "/chats", "```python\nprint('approved')\n```"),
)) {
  if ("type" in event && event.type === "CodeApprovalRequestEvent" && "id" in event) {
    const answer = JSON.stringify({ approved: true });
    assert.equal((await send("b-secret", "POST", `/approvals/${String(event.id)}`, answer)).status, 400);
    assert.equal((await send("a-secret", "POST", `/approvals/${String(event.id)}`, answer)).status, 204);
  }
  if ("content" in event) texts.push(String(event.content));
}
assert.equal(texts.at(-1), "approved\n");
assert.equal(await count("chats"), 0);
// Nor is one kept whose user leaves while it waits for an answer.
const left = await send("a-secret", "POST", "/chats", "```python\nprint('unanswered')\n```");
for await (const event of readEventStream(left)) {
  if (!("type" in event) || event.type !== "CodeApprovalRequestEvent") continue;
  assert.equal(await count("chats"), 1);
  break;
}
while ((await count("chats")) > 0);
await assert.rejects(run("a-secret", 7 as never), InvalidInputError);

// A deployment replaces one replica after another, while bob goes on working: nothing is lost, and nothing happens twice.
const counter =
  "n = int(open('n').read()) + 1 if __import__('os').path.exists('n') else 1; open('n', 'w').write(str(n)); print(n)";
const deployed = new AbortController();
const working = (async () => {
  const numbers: number[] = [];
  while (!deployed.signal.aborted) {
    const last = JSON.stringify((await run("b-secret", counter).catch(() => [])).at(-1) ?? "refused");
    // A replica that shuts down refuses what it has not begun: try again.
    if (last.includes("refused") || last.includes('"type":"error"')) continue;
    numbers.push(Number(/"output":"(\d+)/.exec(last)?.[1]));
  }
  return numbers;
})();
for (const [index, replica] of replicas.entries()) {
  await stopReplica(replica);
  replicas[index] = await startReplica(500, new URL(replica.url).port);
}
deployed.abort();
const numbers = await working;
assert.deepEqual(
  numbers,
  numbers.map((_, index) => index + 1),
);

// SIGTERM while a program is running: its replica ends it and exits, and so do the others.
const busy = run("b-secret", "import time; print('busy', flush=True); time.sleep(600)").catch(
  (error: unknown) => error,
);
while ((await count("running")) === 0);
await Promise.all(replicas.map(stopReplica));
console.log(`${numbers.length} runs during the deployment; then`, String(await busy));
proxy.close();
proxy.closeAllConnections();
await redis[Symbol.asyncDispose]();
await rm(checkpoints, { recursive: true });
