import { randomUUID } from "node:crypto";
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import { type AgentToolContext, betaAgentToolset20260401 } from "@anthropic-ai/sdk/tools/agent-toolset/node";
import type { ExecutorSandboxesOptions } from "../executor-sandboxes-options.ts";
import { ExecutorSandboxes } from "../executor-sandboxes.ts";
import { ClaimedSession, type KeptFiles, type ToolRun } from "./claimed-session.ts";
import { editFile, readFile, writeFile } from "./file-tools.ts";
import { findFiles, searchFiles } from "./search-tools.ts";
import { ToolShell } from "./tool-shell.ts";

/**
 * How a toolset comes by its sandboxes. `createExecutor` gets the session's id, and in `given` the SDK's context of tools: `session`,
 * `workdir`, `allowedRoots`, `readOnlyRoots`. `maxOutputBytes` is what a result has of a command's or search's output. Default: 102,400.
 */
export type FencedToolsetOptions = ExecutorSandboxesOptions;

/** The `tools` of an environment worker. Dispose of it at the end of your program. */
export interface FencedToolset extends AsyncDisposable {
  /** Makes the tools of one session. Its sandbox starts with the first call of one of them. */
  (context: AgentToolContext): BetaRunnableTool[];
}

/**
 * Makes the tools `bash`, `read`, `write`, `edit`, `glob` and `grep` of Claude's managed agents work in Fenced's executors, instead of on the host
 * of the environment worker: one executor for each session that a worker has claimed. It ends with the claim. Paths are those of
 * the executor's workspace.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * await using tools = fencedToolset({ createExecutor: () => new DockerCommandLineCodeExecutor() });
 * await client.beta.environments.work.worker({ environmentId, environmentKey, tools }).run();
 */
export function fencedToolset(options: FencedToolsetOptions): FencedToolset {
  const sandboxes = new ExecutorSandboxes(options, "fencedToolset");
  const maxOutputBytes = options.maxOutputBytes ?? 102_400;
  const kept = new Map<string, KeptFiles>();
  const toolsOf = (context: AgentToolContext): BetaRunnableTool[] => {
    const { session, maxFileBytes, env = {} } = context;
    const id = session?.id ?? randomUUID();
    const claim = new ClaimedSession({ id, given: { ...context }, sandboxes, kept });
    const shell = new ToolShell({ env, maxOutputBytes });
    const files = { maxFileBytes: maxFileBytes === undefined ? 262_144 : (maxFileBytes ?? Infinity), context };
    const runs: Readonly<Record<string, ToolRun>> = {
      bash: (input, call) => shell.run(input, call),
      read: (input, call) => readFile(input, call, files),
      write: (input, call) => writeFile(input, call, files),
      edit: (input, call) => editFile(input, call, files),
      glob: (input, call) => findFiles(input, call),
      grep: (input, call) => searchFiles(input, call, maxOutputBytes),
    };
    // Names, descriptions and schemas are those of the installed SDK. A tool that only it knows would work on this host.
    return betaAgentToolset20260401({ workdir: "/" }).flatMap((own) => {
      const run = "name" in own ? runs[own.name] : undefined;
      if (!("name" in own) || run === undefined) return [];
      return {
        ...own,
        run: (input: unknown, told) => claim.call(own.name, run, input, told?.signal ?? undefined),
        close: () => claim.close(),
      };
    });
  };
  return Object.assign(toolsOf, { [Symbol.asyncDispose]: () => sandboxes[Symbol.asyncDispose]() });
}
