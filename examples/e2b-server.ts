// Runs a program that is written for E2B on this machine: the unmodified client, and a server in your own process.
// needs: python3
import assert from "node:assert/strict";
// #region server
import { createE2BHandler } from "@fenced/e2b";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { serve } from "@hono/node-server";
// #endregion
// #region client
import { Sandbox } from "e2b";
// #endregion

// #region server
const handler = createE2BHandler({
  templates: {
    base: () => new LocalCommandLineCodeExecutor(), // in production: a container, with workspacePath: "/home/user"
  },
  apiKeys: ["e2b_0123456789abcdef"],
  maxSandboxes: 100,
});
const server = serve({ fetch: handler, port: 0 }, ({ port }) => console.log(`http://localhost:${port}`));
process.once("SIGTERM", () => void handler.close().then(() => server.close())); // leaves nothing of any sandbox
// #endregion

const address = server.address();
assert.ok(address !== null && typeof address === "object");
const url = `http://localhost:${address.port}`;
Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: "e2b_0123456789abcdef" });

// #region client
const sandbox = await Sandbox.create();
await sandbox.files.write("numbers.csv", "a,b\n6,7\n");
const command = await sandbox.commands.run("tail -n 1 numbers.csv | tr , '*' | xargs -I{} python3 -c 'print({})'");
console.log(command.stdout); // 42
await sandbox.kill();
// #endregion
assert.equal(command.stdout, "42\n");
await handler.close();
server.close();
