// A complete service: uploads, runs as server-sent events, approvals, quotas, idle limits, clean shutdown on SIGTERM.
// needs: python3
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "@fenced/core";
import { readEventStream } from "@fenced/core/web";

const program = fileURLToPath(new URL("production/service.ts", import.meta.url));
const service = spawn(process.execPath, [...process.execArgv, program], {
  env: { ...process.env, PORT: "0", GRACE_MS: "500", TOKENS: "a-secret=ann,b-secret=bob" },
  stdio: ["ignore", "pipe", "inherit"],
});
const [line] = (await once(createInterface(service.stdout), "line")) as [string];
const url = /http:\S+/.exec(line)?.[0] ?? "";

function send(token: string, method: string, path: string, body?: string): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
}
const run = async (token: string, code: string): Promise<object[]> => {
  const events: object[] = [];
  const response = await send(token, "POST", "/runs", JSON.stringify([{ language: "python", code }]));
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
const added = run("a-secret", `open('log.txt', 'w').close()\n${adding}`);
for (let asked = 0, status = 404; asked < 50; status === 200 && asked++) {
  const log = await send("a-secret", "GET", "/files/log.txt");
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
assert.match(await (await fetch(`${url}/health`)).text(), /"chats":0/);
await assert.rejects(run("a-secret", 7 as never), InvalidInputError);

// SIGTERM while a program is running: the service ends it and exits.
const busy = run("b-secret", "import time; print('busy', flush=True); time.sleep(600)").catch(
  (error: unknown) => error,
);
while (!/"running":1/.test(await (await fetch(`${url}/health`)).text()));
const exit = once(service, "exit");
service.kill("SIGTERM");
const [exitCode] = (await exit) as [number | null];
console.log("exit code", exitCode, String(await busy));
assert.equal(exitCode, 0);
