import type { CodeExecutor } from "@fenced/core";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { checkServerOptions, type McpServerOptions } from "./mcp-server-options.ts";
import { packageVersion } from "./package-version.ts";
import { addListFiles } from "./tools/list-files.ts";
import { addReadFile } from "./tools/read-file.ts";
import { addRestart } from "./tools/restart.ts";
import { addRunCode } from "./tools/run-code.ts";
import { addWriteFile } from "./tools/write-file.ts";

/**
 * A Model Context Protocol server over an executor, with the tools `run_code`, `list_files`, `read_file`, `write_file` and
 * `restart`. Connect it to any transport of the official SDK; it serves one client.
 *
 * @param executor - where the code runs. Started by the first call that needs it; stays the caller's, who stops it when
 * the server has closed.
 * @throws InvalidInputError if a limit makes no sense, or the executor runs no language.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const server = createMcpServer(executor);
 * await server.connect(new StdioServerTransport());
 */
export function createMcpServer(executor: CodeExecutor, options: McpServerOptions = {}): McpServer {
  checkServerOptions(options);
  const server = new McpServer({ name: "fenced", version: packageVersion() });
  addRunCode(server, executor, options);
  addListFiles(server, executor, options);
  addReadFile(server, executor, options);
  addWriteFile(server, executor);
  addRestart(server, executor);
  return server;
}
