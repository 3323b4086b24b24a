// Gives an assistant the tools of an MCP server, which ends with them.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
// #region mcp-tools
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AssistantAgent, mcpTools } from "@fenced/agentchat";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
// #endregion
import { startOpenAIServer } from "./support/model-server.ts";

await using server = await startOpenAIServer([
  { toolCalls: [{ id: "1", name: "list-notes", arguments: "{}" }] },
  { text: "There is a note about apples." },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });
const notesServer = fileURLToPath(new URL("support/notes-server.ts", import.meta.url));
process.env["NOTES_SERVER"] = [process.execPath, ...process.execArgv, notesServer].join(" ");

// #region mcp-tools
const service = createOpenAICompatible({ name: "service", baseURL: process.env["OPENAI_BASE_URL"] ?? "" });
const [command = "", ...args] = (process.env["NOTES_SERVER"] ?? "npx -y a-server-of-notes").split(" ");
const client = new Client({ name: "app", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args }));
await using notes = await mcpTools(client); // its end is the server's
const agent = new AssistantAgent({
  name: "helper",
  modelClient: new AISDKChatCompletionClient({ model: service("qwen3") }),
  tools: notes.tools,
  reflectOnToolUse: true,
});
const { messages } = await agent.run({ task: "What are my notes about?" });
// #endregion

const results = messages.flatMap((message) => (message.type === "ToolCallExecutionEvent" ? message.content : []));
assert.match(results[0]?.content ?? "", /apples/);
assert.match(JSON.stringify(messages.at(-1)), /There is a note about apples/);
