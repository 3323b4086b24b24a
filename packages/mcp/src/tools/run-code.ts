import {
  canonicalLanguage,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  codeResultForModel,
  describeCodeExecutor,
  type HostFunction,
  knownCapabilities,
  type NetworkDecision,
} from "@fenced/core";
import type { McpServer, RegisteredTool } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";
import type { McpServerOptions } from "../mcp-server-options.ts";
import { RunningCode, type RunningCodeOptions, type Waited } from "./running-code.ts";

/** Adds the tool that runs code, and those for code that runs for long. */
export function addRunCode(server: McpServer, executor: CodeExecutor, options: RunningCodeOptions): void {
  const running = new RunningCode(executor, options);
  let offered = offer(executor, options.functions());
  const tool: RegisteredTool = server.registerTool(
    "run_code",
    {
      title: "Run code",
      ...offered,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    async (block, extra) => {
      const waited = await running.begin(block, extra);
      // The languages are exact once the executor has started. One whose session has just ended knows none.
      const now = knownCapabilities(executor) ? offer(executor, options.functions()) : offered;
      if (now.description !== offered.description) {
        offered = now;
        Object.assign(tool, now);
        server.sendToolListChanged();
      }
      return toToolResult(waited, options);
    },
  );
  const inputSchema = { id: z.string().describe("What run_code returned.") };
  server.registerTool(
    "wait_for_code",
    {
      title: "Wait for code",
      description: "Waits for code that run_code left running, and returns its result, or that it is still running.",
      inputSchema,
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    async ({ id }, extra) => toToolResult(await running.wait(id, extra), options),
  );
  server.registerTool(
    "cancel_code",
    {
      title: "Cancel code",
      description: "Kills code that run_code left running, and everything that it started.",
      inputSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    async ({ id }) => {
      await running.cancel(id);
      return { content: [{ type: "text", text: "The code was killed." }] };
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

function toToolResult(waited: Waited, options: McpServerOptions): CallToolResult {
  if (!("result" in waited)) return stillRunning(waited);
  const { result } = waited;
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
  const state = { truncated, timedOut, stateLost, durationMs: Math.round(durationMs) };
  return { content, structuredContent: { exitCode, output, ...state, ...network } };
}

function stillRunning({ id, output }: Extract<Waited, { readonly id: string }>): CallToolResult {
  const soFar = output === "" ? "It has printed nothing so far." : `It has printed so far:\n${output}`;
  const next = `To wait for its end, call wait_for_code with the id ${JSON.stringify(id)}; cancel_code kills it.`;
  return {
    content: [{ type: "text", text: `The code is still running. ${next}\n${soFar}` }],
    structuredContent: { running: true, id, output },
  };
}

function refusal({ protocol, host, port, reason }: NetworkDecision): Partial<NetworkDecision> {
  return { protocol, host, port, ...(reason === undefined ? {} : { reason }) };
}

/** An image as content of a tool's result. */
export function imageContent(bytes: Uint8Array, mimeType: string): CallToolResult["content"][number] {
  return { type: "image", data: Buffer.from(bytes).toString("base64"), mimeType };
}
