import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/** Writes a file in a new session of an MCP server, and returns the list of its files. */
export async function listOverMcp(url: string, token: string, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const client = new Client({ name: "example", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  await client.callTool({ name: "write_file", arguments: { path, content: "mine" } });
  const listed = await client.callTool({ name: "list_files" });
  await client.close();
  return JSON.stringify(listed.content);
}
