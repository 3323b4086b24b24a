// Begins a run that outlives the request that began it; a page that is loaded again misses nothing.
// needs: python3
import assert from "node:assert/strict";
import { once } from "node:events";
// #region server
import type { CodeBlock } from "@fenced/core";
import { eventStreamResponse, httpStatus, readEventStream, toJson } from "@fenced/core/web";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
// #endregion

// #region server
const app = new Hono();
const executor = new LocalCommandLineCodeExecutor(); // for one user; @fenced/pool has one per user

app.onError((error, context) => context.json(toJson(error), httpStatus(error))); // an unknown run is 404
app.put("/runs/:id", async (context) => {
  const run = await executor.submit(await context.req.json<CodeBlock[]>(), { id: context.req.param("id") });
  return context.json({ id: run.id }, 202); // sent again, it is the same run
});
app.get("/runs/:id/events", (context) => {
  const run = executor.run(context.req.param("id"));
  return eventStreamResponse(run, { request: context.req.raw }); // a client that leaves ends nothing
});
// #endregion
const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });

await once(server, "listening");
const address = server.address();
assert.ok(typeof address === "object" && address !== null);
const url = `http://127.0.0.1:${address.port}/runs/order-42`;

const code = "import time\nfor i in range(5):\n    print(i, flush=True)\n    time.sleep(0.2)";
const blocks: CodeBlock[] = [{ language: "python", code }];
// #region client
await fetch(url, { method: "PUT", body: JSON.stringify(blocks) });
for await (const event of readEventStream(await fetch(`${url}/events`))) {
  console.log(event); // { type: "block-start", … }
  break; // the page is closed
}
// Later, in another tab: everything from the beginning, then live.
for await (const event of readEventStream(await fetch(`${url}/events`))) console.log(event);
// #endregion

// #region reconnect
const headers = { authorization: "Bearer secret" };
const reconnect = (lastEventId: string) =>
  fetch(`${url}/events`, { headers: { ...headers, "last-event-id": lastEventId } });
const again = readEventStream(await fetch(`${url}/events`, { headers }), { reconnect });
// #endregion
let last: object = {};
for await (const event of again) last = event;
assert.ok("type" in last && last.type === "result");

// A browser that retries its request runs nothing twice.
await fetch(url, { method: "PUT", body: JSON.stringify(blocks) });
// #region result
const run = executor.run("order-42");
const result = await run.result();
// #endregion
assert.equal(result.output, "0\n1\n2\n3\n4\n");
assert.deepEqual(
  executor.runs().map(({ id, state }) => [id, state]),
  [["order-42", "finished"]],
);
const unknown = await fetch(url.replace("order-42", "order-43/events"));
assert.equal(unknown.status, 404);
assert.match(await unknown.text(), /There is no run/);
await executor.stop();
server.close();
if ("closeAllConnections" in server) server.closeAllConnections(); // those that clients keep for later
