// Streams what a program prints to a client, as server-sent events; when the client leaves, the program is killed.
// needs: python3
import assert from "node:assert/strict";
import { once } from "node:events";
// #region server
import type { CodeBlock } from "@fenced/core";
import { eventStreamResponse, readEventStream } from "@fenced/core/web";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
// #endregion
import { hasEnded, isAlive } from "./support/is-alive.ts";

// #region server
const app = new Hono();
const executor = new LocalCommandLineCodeExecutor(); // for one user; @fenced/pool has one per user

app.post("/run", async (context) => {
  const blocks = await context.req.json<CodeBlock[]>();
  return eventStreamResponse((signal) => executor.streamCodeBlocks(blocks, { signal }));
});
// #endregion
const server = serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 0), hostname: "127.0.0.1" });

await once(server, "listening");
const address = server.address();
assert.ok(typeof address === "object" && address !== null);
const url = `http://127.0.0.1:${address.port}/run`;

// A client that stays sees the output live, and then the result.
// #region client
const blocks = [{ language: "python", code: "import time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two')" }];
const response = await fetch(url, { method: "POST", body: JSON.stringify(blocks) });
for await (const event of readEventStream(response)) console.log(event); // { type: "stdout", index: 0, text: "one\n" } …
// #endregion

const events: object[] = [];
for await (const event of readEventStream(await fetch(url, { method: "POST", body: JSON.stringify(blocks) }))) {
  events.push(event);
}
const texts = events.flatMap((event) => ("text" in event ? [event.text] : []));
assert.ok(texts.length > 1 && texts.join("") === "one\ntwo\n");
assert.match(JSON.stringify(events.at(-1)), /"exitCode":0/);

// A client that leaves takes the program with it.
let [printed, pid] = ["", 0];
const endless = [
  { language: "python", code: "import os, time\nprint('process', os.getpid(), flush=True)\ntime.sleep(600)" },
];
for await (const event of readEventStream(await fetch(url, { method: "POST", body: JSON.stringify(endless) }))) {
  // A line may come in pieces.
  if ("text" in event) printed += String(event.text);
  pid = Number(/process (\d+)\n/.exec(printed)?.[1] ?? 0);
  if (pid > 0) break;
}
assert.ok(pid > 0 && (await hasEnded(pid)) && !isAlive(pid));
await executor.stop();
server.close();
if ("closeAllConnections" in server) server.closeAllConnections(); // those that clients keep for later
