import { type CodeExecutor, InvalidInputError } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";

/** Adds the tool that writes a file of the workspace. */
export function addWriteFile(server: McpServer, executor: CodeExecutor): void {
  server.registerTool(
    "write_file",
    {
      title: "Write file",
      description: "Writes a file of the workspace, over an older one; its directories are made.",
      inputSchema: {
        path: z.string().min(1).describe("Relative to the workspace."),
        content: z.string().describe("The whole file."),
        encoding: z.enum(["utf8", "base64"]).default("utf8").describe("How `content` is written here."),
      },
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    async ({ path, content, encoding }) => {
      if (encoding === "base64" && !z.base64().safeParse(content).success) {
        throw new InvalidInputError("The content is not base64", {
          remedy: "Encode it, or leave `encoding` out to write a text.",
        });
      }
      const bytes = Buffer.from(content, encoding);
      await executor.files.write(path, bytes);
      return { content: [{ type: "text", text: `Wrote ${path} (${bytes.length} bytes).` }] };
    },
  );
}
