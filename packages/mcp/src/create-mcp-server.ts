import type { CodeExecutor } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ExecutorServer } from "./executor-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";

/**
 * A Model Context Protocol server over an executor, with the tools `run_code`, `list_files`, `read_file`, `write_file` and
 * `restart`. Connect it to any transport of the official SDK; it serves one client.
 *
 * @param executor - where the code runs. Started by the first call that needs it, or, if it does not know its languages before it
 * has started, when the server is connected. It stays the caller's, who stops it when the server has closed.
 * @throws InvalidInputError if an option is unknown or wrong. `connect` throws it if the executor runs no language, or its code
 * cannot call functions of the host and there are servers to connect to, and BackendUnavailableError if one of these does not answer.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const server = createMcpServer(executor);
 * await server.connect(new StdioServerTransport());
 */
export function createMcpServer(executor: CodeExecutor, options: McpServerOptions = {}): McpServer {
  return new ExecutorServer(executor, options);
}
