// Lets code call another MCP server's tools, through fenced-mcp --connect, and asks the user before it changes anything.
// needs: python3
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

// An MCP host: Claude, an editor, or a program like this one, which can ask its user.
const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: { elicitation: {} } });
const asked: string[] = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: { allow: "once" } };
});

// In a host's settings: npx -y @fenced/mcp --connect "npx -y a-server-of-notes"
const command = process.execPath;
const { execArgv } = process;
const fencedMcp = fileURLToPath(new URL("cli.ts", import.meta.resolve("@fenced/mcp")));
const notesServer = fileURLToPath(new URL("support/notes-server.ts", import.meta.url));
const args = [...execArgv, fencedMcp, "--executor", "local"];
const connect = [command, ...execArgv, notesServer].map((word) => `"${word}"`).join(" ");
await client.connect(new StdioClientTransport({ command, args: [...args, "--connect", connect], stderr: "ignore" }));

const { tools } = await client.listTools();
const { description = "" } = tools.find(({ name }) => name === "run_code") ?? {};
console.log(description); // the signatures of list_notes and delete_note, and how to import them
const code = `
from functions import list_notes, delete_note

for note in list_notes()["notes"]:
    if "apples" in note["text"]:
        print(delete_note(id=note["id"]))
`;
const result = await client.callTool({ name: "run_code", arguments: { language: "python", code } });
console.log(result.structuredContent);
await client.close(); // both servers end

assert.match(description, /def delete_note\(id: int\) -> Any:\n {4}"""Deletes a note\."""/);
assert.match(JSON.stringify(result.structuredContent), /"exitCode":0,"output":"Note 1 is deleted\.\\n"/);
assert.deepEqual(asked, ['The running code wants to call delete_note({"id":1})']);
