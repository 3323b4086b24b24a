import { type AiSdkTool, type HostFunction, hostFunctionsFrom, toFunctionName } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { type ConnectOptions, McpConnection } from "./mcp-connection.ts";
import type { McpTarget } from "./mcp-target.ts";

/** Calls that a person must approve: `writes` (calls of tools that their server does not mark as read-only), all, or none. */
export type ApprovedCalls = "writes" | "all" | "none";

/** A tool and the server that offers it. */
interface OfferedTool {
  readonly connection: McpConnection;
  readonly tool: Tool;
}

/** Connections to other servers, and their tools as functions that code can call. */
export class ConnectedServers {
  /** Functions without `approve`; `needsApproval` says which calls need it. */
  readonly functions: readonly HostFunction[];
  readonly #connections: readonly McpConnection[];

  private constructor(connections: readonly McpConnection[], approved: ApprovedCalls) {
    this.#connections = connections;
    this.functions = hostFunctionsFrom(toolsByName(connections, approved));
  }

  /** @throws as `McpConnection.open` if one of them cannot be opened; then none stays open. */
  static async open(
    targets: readonly McpTarget[],
    { approveCalls, ...options }: ConnectOptions & { readonly approveCalls: ApprovedCalls },
  ): Promise<ConnectedServers> {
    const failed = new AbortController();
    const signal = joinSignals(options.signal, failed.signal);
    const opening = targets.map((target) =>
      McpConnection.open(target, { ...options, signal }).catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    );
    const settled = await Promise.allSettled(opening);
    const connections = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    try {
      options.signal.throwIfAborted();
      failed.signal.throwIfAborted();
      return new ConnectedServers(connections, approveCalls);
    } catch (error) {
      await closeAll(connections);
      throw error;
    }
  }

  async close(): Promise<void> {
    await closeAll(this.#connections);
  }
}

async function closeAll(connections: readonly McpConnection[]): Promise<void> {
  await Promise.all(connections.map((connection) => connection.close().catch(() => {})));
}

function toolsByName(
  connections: readonly McpConnection[],
  approved: ApprovedCalls,
): Readonly<Record<string, AiSdkTool>> {
  const offered = connections.flatMap((connection) => connection.tools.map((tool) => ({ connection, tool })));
  const names = functionNames(offered);
  return Object.fromEntries(offered.map((each, index) => [names[index] ?? "", toTool(each, approved)]));
}

/** Unique identifiers: a name that several servers use gets the server's name as a prefix and, if still taken, a number. */
function functionNames(offered: readonly OfferedTool[]): string[] {
  const plain = offered.map(({ tool }) => toFunctionName(tool.name));
  const owners = new Map<string, Set<McpConnection>>();
  for (const [index, { connection }] of offered.entries()) {
    const name = plain[index] ?? "";
    owners.set(name, (owners.get(name) ?? new Set()).add(connection));
  }
  const taken = new Set<string>();
  return offered.map(({ connection, tool }, index) => {
    const name = plain[index] ?? "";
    const wanted = owners.get(name)?.size === 1 ? name : toFunctionName(`${connection.name}_${tool.name}`);
    let free = wanted;
    for (let count = 2; taken.has(free) || (free !== name && owners.has(free)); count += 1) free = `${wanted}_${count}`;
    taken.add(free);
    return free;
  });
}

function toTool({ connection, tool }: OfferedTool, approved: ApprovedCalls): AiSdkTool {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return {
    description: description ?? title ?? annotations?.title ?? "",
    inputSchema,
    ...(outputSchema && { outputSchema }),
    needsApproval: approved === "all" || (approved === "writes" && annotations?.readOnlyHint !== true),
    execute: (input: unknown, { abortSignal }: { readonly abortSignal: AbortSignal }) =>
      connection.call(name, input, abortSignal),
  };
}
