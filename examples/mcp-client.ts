// Serves an executor over the Model Context Protocol, and calls it with the official client.
// needs: python3
import assert from "node:assert/strict";
// #region mcp
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { startMcpHttpServer } from "@fenced/mcp";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
// #endregion

// #region mcp
await using server = await startMcpHttpServer({
  createExecutor: () => new LocalCommandLineCodeExecutor({ timeoutMs: 30_000 }), // one per session
});
console.log(server.url); // http://127.0.0.1:…/mcp

const headers = { authorization: `Bearer ${server.token}` };
const transport = new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } });
const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(transport);

await client.callTool({ name: "write_file", arguments: { path: "prices.csv", content: "a,3\nb,5\n" } });
const code = `
print("adding up", flush=True)
import time; time.sleep(0.5)
print(sum(int(line.split(",")[1]) for line in open("prices.csv")))
`;
const result = await client.callTool({ name: "run_code", arguments: { language: "python", code } }, undefined, {
  onprogress: ({ message }) => console.log(message), // live output
});
console.log(result.structuredContent); // { exitCode: 0, output: "adding up\n8\n", … }
await transport.terminateSession(); // its executor is stopped
await client.close();
// #endregion

assert.match(JSON.stringify(result.structuredContent), /"exitCode":0,"output":"adding up\\n8\\n"/);
