import type { CodeExecutor } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

/** Adds the tool that starts a fresh session. */
export function addRestart(server: McpServer, executor: CodeExecutor): void {
  server.registerTool(
    "restart",
    {
      title: "Restart",
      description: "Starts a fresh session: kills all running code and forgets variables. Files in the workspace stay.",
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    async () => {
      await executor.restart();
      return {
        content: [{ type: "text", text: "Restarted: no variables, no processes. Files are still there." }],
      };
    },
  );
}
