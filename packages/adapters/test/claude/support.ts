import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { type BetaRunnableTool, runRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type { AgentToolContext } from "@anthropic-ai/sdk/tools/agent-toolset/node";
import type { CodeExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ClaudeAgentsApi, type ToolAnswer } from "@fenced/test-support/claude-agents-api";
import { onTestFinished } from "vitest";
import { fencedToolset, type FencedToolset, type FencedToolsetOptions } from "../../src/claude/index.ts";

/** A toolset whose sandboxes, by default processes of this host, are ended after the test. */
export function newToolset(options: Partial<FencedToolsetOptions> = {}): FencedToolset & { executors: CodeExecutor[] } {
  const executors: CodeExecutor[] = [];
  const { createExecutor = () => new LocalCommandLineCodeExecutor(), ...others } = options;
  const toolset = fencedToolset({
    ...others,
    createExecutor: async (request) => {
      const executor = await createExecutor(request);
      executors.push(executor);
      return executor;
    },
  });
  onTestFinished(() => toolset[Symbol.asyncDispose]());
  return Object.assign(toolset, { executors });
}

/** The tools of one session, called as the SDK's runners call them. */
export function newTools(
  options: Partial<FencedToolsetOptions> = {},
  context: Partial<AgentToolContext> = {},
): {
  readonly tools: BetaRunnableTool[];
  readonly executors: CodeExecutor[];
  readonly call: (name: string, input: object, signal?: AbortSignal) => Promise<ToolAnswer>;
} {
  const toolset = newToolset(options);
  const tools = toolset({ workdir: "/nowhere", ...context });
  const call = async (name: string, input: object, signal?: AbortSignal): Promise<ToolAnswer> => {
    const tool = tools.find((each) => "name" in each && each.name === name);
    if (!tool) throw new Error(`there is no tool ${name}`);
    const toolUse = { type: "tool_use", id: "1", name, input, caller: { type: "direct" } } as const;
    // oxlint-disable-next-line typescript/no-deprecated -- the type asks for both
    const { content, isError } = await runRunnableTool(tool, input, { toolUse, toolUseBlock: toolUse, signal });
    if (typeof content !== "string") throw new Error("it is no text");
    return { isError, text: content };
  };
  return { tools, executors: toolset.executors, call };
}

/** A worker of the SDK that serves sessions of the API until the test has finished. */
export async function newWorker(
  toolset: FencedToolset,
  { maxIdleMs = 60_000 }: { readonly maxIdleMs?: number } = {},
): Promise<ClaudeAgentsApi> {
  const api = await ClaudeAgentsApi.start();
  const workdir = mkdtempSync(join(tmpdir(), "fenced-claude-"));
  const stopping = new AbortController();
  const client = new Anthropic({ baseURL: api.url, apiKey: "unused", logLevel: "off" });
  const worker = client.beta.environments.work.worker({
    environmentId: "env",
    environmentKey: "environment-key",
    workdir,
    tools: toolset,
    maxIdleMs,
  });
  const serving = worker.run(stopping.signal);
  serving.catch(() => {});
  onTestFinished(async () => {
    stopping.abort();
    await serving.catch(() => {});
    await api[Symbol.asyncDispose]();
    rmSync(workdir, { recursive: true, force: true });
  });
  return api;
}
