// A small third-party MCP server on standard input and output.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as z from "zod";

const notes = new Map([
  [1, "Buy apples"],
  [2, "Call Ann"],
]);

const server = new McpServer({ name: "notes", version: "1.0.0" });
server.registerTool(
  "list-notes",
  {
    description: "Lists all notes.",
    outputSchema: { notes: z.array(z.object({ id: z.int(), text: z.string() })) },
    annotations: { readOnlyHint: true },
  },
  () => {
    const structuredContent = { notes: [...notes].map(([id, text]) => ({ id, text })) };
    return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
  },
);
server.registerTool("delete-note", { description: "Deletes a note.", inputSchema: { id: z.int() } }, ({ id }) => ({
  content: [{ type: "text", text: notes.delete(id) ? `Note ${id} is deleted.` : "There is no such note." }],
}));
await server.connect(new StdioServerTransport());
