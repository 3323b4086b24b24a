import { type CodeExecutor, FileNotFoundError, InvalidInputError, type WorkspaceFiles } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";

/** Adds the tool that writes a file of the workspace. */
export function addWriteFile(server: McpServer, executor: CodeExecutor): void {
  server.registerTool(
    "write_file",
    {
      title: "Write file",
      description:
        "Writes a file of the workspace, replacing an existing one; missing directories are created. Send a large file " +
        "in parts: the first without append, the others with append.",
      inputSchema: {
        path: z.string().min(1).describe("Relative to the workspace."),
        content: z.string().describe("The whole file, or with append its next part."),
        append: z.boolean().default(false).describe("Add the content to the end of the file."),
        encoding: z.enum(["utf8", "base64"]).default("utf8").describe("How `content` is encoded."),
      },
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    },
    async ({ path, content, encoding, append }) => {
      if (encoding === "base64" && !z.base64().safeParse(content).success) {
        throw new InvalidInputError("The content is not valid base64", {
          remedy: "Encode it, or leave out `encoding` to write text.",
        });
      }
      const bytes = Buffer.from(content, encoding);
      if (!append) {
        await executor.files.write(path, bytes);
        return { content: [{ type: "text", text: `Wrote ${path} (${bytes.length} bytes).` }] };
      }
      const size = await addToFile(executor.files, path, bytes);
      return { content: [{ type: "text", text: `Added ${bytes.length} bytes to ${path} (now ${size} bytes).` }] };
    },
  );
}

/** Rewrites the file with the next part appended, without holding the file in memory. @returns its size in bytes. */
async function addToFile(files: WorkspaceFiles, path: string, bytes: Uint8Array): Promise<number> {
  const { size } = await files.stat(path).catch((error: unknown) => {
    if (FileNotFoundError.isInstance(error)) return { size: 0 };
    throw error;
  });
  if (size === 0) {
    await files.write(path, bytes);
    return bytes.length;
  }
  // The stream replaces the file only when it is closed, so the old content stays readable until then.
  const writer = files.writeStream(path).getWriter();
  try {
    for await (const chunk of files.readStream(path, { end: size - 1 })) await writer.write(chunk);
    await writer.write(bytes);
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  }
  return size + bytes.length;
}
