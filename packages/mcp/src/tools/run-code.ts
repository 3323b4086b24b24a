import {
  canonicalLanguage,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  type CodeResult,
  codeResultForModel,
  describeCodeExecutor,
  executeWithProgress,
  type ApproveHostCall,
  type HostFunction,
  type NetworkDecision,
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
  durationMs: z.number().describe("How long the code ran, in milliseconds."),
  network: z
    .array(z.object({ protocol: z.string(), host: z.string(), port: z.int(), reason: z.string().optional() }))
    .optional()
    .describe("Requests that the network policy refused while the code ran, at most 50."),
  images: z.int().describe("The number of images that come with this result."),
});

/** Options of `addRunCode`. */
export interface RunCodeOptions extends McpServerOptions {
  /** Functions that the code can call. */
  readonly functions: () => readonly HostFunction[];
  /** Decides about calls from the code that a request runs. */
  readonly approver: (extra: Extra) => ApproveHostCall;
}

/** Adds the tool that runs code. */
export function addRunCode(server: McpServer, executor: CodeExecutor, options: RunCodeOptions): void {
  let offered = offer(executor, options.functions());
  const tool: RegisteredTool = server.registerTool(
    "run_code",
    {
      title: "Run code",
      ...offered,
      outputSchema: resultSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    async (block, extra) => {
      const approve = options.approver(extra);
      const functions = options.functions().map((each) => ({ ...each, approve }));
      const result = await run(executor, { block, functions }, extra);
      // The languages are exact once the executor has started.
      const now = offer(executor, options.functions());
      if (now.description !== offered.description) {
        offered = now;
        Object.assign(tool, now);
        server.sendToolListChanged();
      }
      return toToolResult(result, options);
    },
  );
}

function offer(
  executor: CodeExecutor,
  functions: readonly HostFunction[],
): { description: string; inputSchema: z.ZodType<CodeBlock> } {
  const languages = executor.capabilities.languages.map(canonicalLanguage);
  return { description: describeCodeExecutor(executor, languages, functions), inputSchema: codeBlockSchema(languages) };
}

function run(
  executor: CodeExecutor,
  { block, functions }: { readonly block: CodeBlock; readonly functions: readonly HostFunction[] },
  { signal, _meta, sendNotification }: Extra,
): Promise<CodeResult> {
  const progressToken = _meta?.progressToken;
  const options = { signal, ...(functions.length > 0 && { functions }) };
  if (progressToken === undefined) return executor.executeCodeBlocks([block], options);
  let progress = 0;
  return executeWithProgress(executor, [block], {
    ...options,
    onProgress(message) {
      progress += 1;
      const params = { progressToken, progress, message };
      // Ignore a client that has disconnected; its request's signal aborts.
      sendNotification({ method: "notifications/progress", params }).catch(() => {});
    },
  });
}

function toToolResult(result: CodeResult, options: McpServerOptions): CallToolResult {
  // Paths on the server's host are useless to the client.
  const displays = result.displays.map((display) => ({ ...display, files: [] }));
  const { text, output, truncated, images } = codeResultForModel({ ...result, displays }, 1, options);
  const { exitCode, timedOut, stateLost, durationMs } = result;
  const structuredContent = {
    exitCode,
    output,
    truncated,
    timedOut,
    stateLost,
    durationMs,
    ...(result.network && { network: result.network.map(refusal) }),
    images: images.length,
  };
  return {
    content: [{ type: "text", text }, ...images.map(({ bytes, mediaType }) => imageContent(bytes, mediaType))],
    structuredContent,
  };
}

function refusal({ protocol, host, port, reason }: NetworkDecision): Partial<NetworkDecision> {
  return { protocol, host, port, ...(reason === undefined ? {} : { reason }) };
}

/** An image as content of a tool's result. */
export function imageContent(bytes: Uint8Array, mimeType: string): CallToolResult["content"][number] {
  return { type: "image", data: Buffer.from(bytes).toString("base64"), mimeType };
}
