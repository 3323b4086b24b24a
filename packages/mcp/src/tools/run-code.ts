import {
  canonicalLanguage,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  type CodeResult,
  codeResultForModel,
  describeCodeExecutor,
  executeWithProgress,
  knownCapabilities,
  type ApproveHostCall,
  type HostFunction,
  type NetworkDecision,
} from "@fenced/core";
import type { McpServer, RegisteredTool } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type * as z from "zod";
import { defaultHeartbeatMs, type McpServerOptions } from "../mcp-server-options.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

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
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    async (block, extra) => {
      const approve = options.approver(extra);
      const functions = options.functions().map((each) => ({ ...each, approve }));
      const result = await run(executor, { block, functions, heartbeatMs: options.heartbeatMs }, extra);
      // The languages are exact once the executor has started. One whose session has just ended knows none.
      const now = knownCapabilities(executor) ? offer(executor, options.functions()) : offered;
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

interface Run {
  readonly block: CodeBlock;
  readonly functions: readonly HostFunction[];
  readonly heartbeatMs: number | undefined;
}

async function run(
  executor: CodeExecutor,
  { block, functions, heartbeatMs = defaultHeartbeatMs }: Run,
  { signal, _meta, sendNotification }: Extra,
): Promise<CodeResult> {
  const progressToken = _meta?.progressToken;
  const options = { signal, ...(functions.length > 0 && { functions }) };
  if (progressToken === undefined) return executor.executeCodeBlocks([block], options);
  let progress = 0;
  const report = (message: string): void => {
    progress += 1;
    const params = { progressToken, progress, message };
    // Ignore a client that has disconnected; its request's signal aborts.
    sendNotification({ method: "notifications/progress", params }).catch(() => {});
  };
  const startedAt = performance.now();
  const seconds = (): number => Math.round((performance.now() - startedAt) / 1000);
  // Also while the executor starts, which may pull an image.
  const heart = setInterval(() => report(`Still running, after ${seconds()} s.`), heartbeatMs);
  const onProgress = (text: string): void => {
    heart.refresh();
    report(text);
  };
  try {
    return await executeWithProgress(executor, [block], { ...options, onProgress });
  } finally {
    clearInterval(heart);
  }
}

function toToolResult(result: CodeResult, options: McpServerOptions): CallToolResult {
  // Paths on the server's host are useless to the client.
  const displays = result.displays.map((display) => ({ ...display, files: [] }));
  const { text, output, truncated, images } = codeResultForModel({ ...result, displays }, 1, options);
  const { exitCode, timedOut, stateLost, durationMs } = result;
  const content: CallToolResult["content"] = [{ type: "text", text }];
  // Hosts that find structured content show nothing else to the model, so images would be lost.
  if (images.length > 0) {
    return { content: [...content, ...images.map(({ bytes, mediaType }) => imageContent(bytes, mediaType))] };
  }
  const network = result.network && { network: result.network.map(refusal) };
  return { content, structuredContent: { exitCode, output, truncated, timedOut, stateLost, durationMs, ...network } };
}

function refusal({ protocol, host, port, reason }: NetworkDecision): Partial<NetworkDecision> {
  return { protocol, host, port, ...(reason === undefined ? {} : { reason }) };
}

/** An image as content of a tool's result. */
export function imageContent(bytes: Uint8Array, mimeType: string): CallToolResult["content"][number] {
  return { type: "image", data: Buffer.from(bytes).toString("base64"), mimeType };
}
