import {
  canonicalLanguage,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  type CodeResult,
  codeResultForModel,
  describeCodeExecutor,
  executeWithProgress,
} from "@fenced/core";
import type { McpServer, RegisteredTool } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";
import type { McpServerOptions } from "../mcp-server-options.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

const resultSchema = z.object({
  exitCode: z.int().describe("0: success; 124: timed out; otherwise the program's own exit code."),
  output: z.string().describe("Standard output and standard error in order of arrival."),
  truncated: z.boolean().describe("The output was too long; its middle is left out."),
  timedOut: z.boolean().describe("The code was killed at its time limit."),
  stateLost: z.boolean().describe("The session had to be restarted: variables of earlier calls are gone."),
  durationMs: z.number().describe("Milliseconds that the code took."),
  images: z.int().describe("How many images come with this result."),
});

/** Adds the tool that runs code. */
export function addRunCode(server: McpServer, executor: CodeExecutor, options: McpServerOptions): void {
  let offered = offer(executor);
  const tool: RegisteredTool = server.registerTool(
    "run_code",
    {
      title: "Run code",
      ...offered,
      outputSchema: resultSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    async (block, extra) => {
      const result = await run(executor, block, extra);
      // Which languages there are is exact once the executor has started.
      const now = offer(executor);
      if (now.description !== offered.description) {
        offered = now;
        Object.assign(tool, now);
        server.sendToolListChanged();
      }
      return toToolResult(result, options);
    },
  );
}

function offer(executor: CodeExecutor): { description: string; inputSchema: z.ZodType<CodeBlock> } {
  const languages = executor.capabilities.languages.map(canonicalLanguage);
  return { description: describeCodeExecutor(executor, languages), inputSchema: codeBlockSchema(languages) };
}

function run(
  executor: CodeExecutor,
  block: CodeBlock,
  { signal, _meta, sendNotification }: Extra,
): Promise<CodeResult> {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return executor.executeCodeBlocks([block], { signal });
  let progress = 0;
  return executeWithProgress(executor, [block], {
    signal,
    onProgress(message) {
      progress += 1;
      const params = { progressToken, progress, message };
      // A client that has gone away is not told; that its request is over comes as the signal.
      sendNotification({ method: "notifications/progress", params }).catch(() => {});
    },
  });
}

function toToolResult(result: CodeResult, options: McpServerOptions): CallToolResult {
  // Paths on the server's host are of no use to the client.
  const displays = result.displays.map((display) => ({ ...display, files: [] }));
  const { text, output, truncated, images } = codeResultForModel({ ...result, displays }, 1, options);
  const { exitCode, timedOut, stateLost, durationMs } = result;
  const structuredContent = { exitCode, output, truncated, timedOut, stateLost, durationMs, images: images.length };
  return {
    content: [{ type: "text", text }, ...images.map(({ bytes, mediaType }) => imageContent(bytes, mediaType))],
    structuredContent,
  };
}

/** An image as content of a tool's result. */
export function imageContent(bytes: Uint8Array, mimeType: string): CallToolResult["content"][number] {
  return { type: "image", data: Buffer.from(bytes).toString("base64"), mimeType };
}
