import type { CodeExecutor } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";
import type { McpServerOptions } from "../mcp-server-options.ts";

const fileSchema = z.object({
  path: z.string().describe("Relative to the workspace."),
  size: z.number().describe("Bytes."),
});

/** Adds the tool that lists the workspace's files. */
export function addListFiles(server: McpServer, executor: CodeExecutor, { maxFiles = 1000 }: McpServerOptions): void {
  server.registerTool(
    "list_files",
    {
      title: "List files",
      description: "Lists the files in the workspace, the directory in which code runs, including subdirectories.",
      inputSchema: {
        directory: z.string().optional().describe("A directory of the workspace. Default: the whole workspace."),
      },
      outputSchema: {
        files: z.array(fileSchema).describe("Sorted by path."),
        total: z.int().describe("The total number of files; `files` may list fewer."),
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    async ({ directory }) => {
      const found = await executor.files.list(directory);
      const files = found.slice(0, maxFiles).map(({ path, size }) => ({ path, size }));
      const lines = files.map(({ path, size }) => `${oneLine(path)} (${size} bytes)`);
      if (found.length > files.length) lines.push(`... and ${found.length - files.length} more`);
      const text = found.length === 0 ? "There are no files." : lines.join("\n");
      return { content: [{ type: "text", text }], structuredContent: { files, total: found.length } };
    },
  );
}

/** A name on one line: code chooses names, and a line break in one could forge other entries. */
function oneLine(path: string): string {
  return /[\p{Cc}\u2028\u2029]/u.test(path) ? JSON.stringify(path) : path;
}
