import type { CodeExecutor } from "@fenced/core";
import { checkOptions, codeExecutorOption, optionsSchema } from "@fenced/core/options";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { serverLimits, type McpServerOptions } from "./mcp-server-options.ts";
import { packageVersion } from "./package-version.ts";
import { addListFiles } from "./tools/list-files.ts";
import { addReadFile } from "./tools/read-file.ts";
import { addRestart } from "./tools/restart.ts";
import { addRunCode } from "./tools/run-code.ts";
import { addWriteFile } from "./tools/write-file.ts";

const serverOptions = optionsSchema({ executor: codeExecutorOption, ...serverLimits });

/**
 * A Model Context Protocol server over an executor, with the tools `run_code`, `list_files`, `read_file`, `write_file` and
 * `restart`. Connect it to any transport of the official SDK; it serves one client.
 *
 * @param executor - where the code runs. Started by the first call that needs it, or, if it does not know its languages before it
 * has started, when the server is connected. It stays the caller's, who stops it when the server has closed.
 * @throws InvalidInputError if an option is unknown or wrong. `connect` throws it if the executor runs no language.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const server = createMcpServer(executor);
 * await server.connect(new StdioServerTransport());
 */
export function createMcpServer(executor: CodeExecutor, options: McpServerOptions = {}): McpServer {
  checkOptions(serverOptions, { ...options, executor }, "createMcpServer");
  return new ExecutorServer(executor, options);
}

/** Has its tools from the beginning, or from the moment at which it is known which languages there are. */
class ExecutorServer extends McpServer {
  readonly #executor: CodeExecutor;
  readonly #addTools: () => void;
  #hasTools = false;

  constructor(executor: CodeExecutor, options: McpServerOptions) {
    super({ name: "fenced", version: packageVersion() });
    this.#executor = executor;
    this.#addTools = () => {
      addRunCode(this, executor, options);
      addListFiles(this, executor, options);
      addReadFile(this, executor, options);
      addWriteFile(this, executor);
      addRestart(this, executor);
      this.#hasTools = true;
    };
    if (executor.capabilities.languages.length > 0) this.#addTools();
  }

  override async connect(transport: Transport): Promise<void> {
    if (!this.#hasTools) {
      await this.#executor.start();
      this.#addTools();
    }
    await super.connect(transport);
  }
}
