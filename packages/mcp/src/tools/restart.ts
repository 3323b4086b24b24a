import type { CodeExecutor } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

/** Adds the tool that begins a fresh session. */
export function addRestart(server: McpServer, executor: CodeExecutor): void {
  server.registerTool(
    "restart",
    {
      title: "Restart",
      description: "Begins a fresh session: ends all code that runs and forgets variables. The workspace's files stay.",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    async () => {
      await executor.restart();
      return {
        content: [{ type: "text", text: "The session is fresh: no variables, no processes. Files are still there." }],
      };
    },
  );
}
