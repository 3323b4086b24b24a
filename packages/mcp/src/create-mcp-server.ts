import type { CodeExecutor } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ExecutorServer } from "./executor-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";

/**
 * Creates a Model Context Protocol server for an executor, with the tools `run_code`, `list_files`, `read_file`,
 * `write_file` and `restart`. Connect it to any transport of the official SDK; it serves one client.
 *
 * @param executor - where the code runs. It starts on the first call that needs it or, if it does not know its
 * languages before it has started, when the server is connected. You stop it after the server has closed.
 * @throws InvalidInputError if an option is unknown or wrong. The server's `connect()` also throws it if the executor
 * runs no language, or if `options.connect` lists servers but code cannot call host functions; and
 * BackendUnavailableError if one of these servers does not answer.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const server = createMcpServer(executor);
 * await server.connect(new StdioServerTransport());
 */
export function createMcpServer(executor: CodeExecutor, options: McpServerOptions = {}): McpServer {
  return new ExecutorServer(executor, options);
}
