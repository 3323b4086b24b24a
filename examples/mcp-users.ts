// Serves MCP to several users in a Hono app: each user has a token, and each session its own executor.
// needs: python3
import assert from "node:assert/strict";
// #region users
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { createMcpHandler } from "@fenced/mcp";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
// #endregion
import { listOverMcp } from "./support/list-over-mcp.ts";

// #region users
const users = new Map([
  ["Bearer token-of-ann", { name: "ann" }],
  ["Bearer token-of-bob", { name: "bob" }],
]);

const handler = createMcpHandler({
  authenticate: ({ headers }) => users.get(headers.get("authorization") ?? ""), // undefined: 401
  createExecutor: ({ user, sessionId }) => {
    console.log(`A session of ${user.name}: ${sessionId}`);
    return new LocalCommandLineCodeExecutor({ timeoutMs: 30_000 }); // in production: a container
  },
  allowedHosts: ["tools.example"], // the names of your service, besides localhost
  maxSessions: 100,
});

const app = new Hono();
app.all("/mcp", (context) => handler(context.req.raw));
const server = serve({ fetch: app.fetch, port: 0 }, ({ port }) => console.log(`http://localhost:${port}/mcp`));
process.once("SIGTERM", () => void handler.close().then(() => server.close())); // leaves nothing of any session
// #endregion

const address = server.address();
assert.ok(address !== null && typeof address === "object");
const url = `http://localhost:${address.port}/mcp`;
const [ann, bob] = await Promise.all(["ann", "bob"].map((name) => listOverMcp(url, `token-of-${name}`, `${name}.txt`)));
assert.match(ann ?? "", /"ann\.txt/);
assert.match(bob ?? "", /"bob\.txt/);
assert.doesNotMatch(bob ?? "", /ann/);
await assert.rejects(listOverMcp(url, "token-of-eve", "eve.txt"));
await handler.close();
server.close();
