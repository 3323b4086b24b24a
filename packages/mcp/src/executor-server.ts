import { type CodeExecutor, InvalidInputError, knownCapabilities } from "@fenced/core";
import { checkOptions, codeExecutorOption, optionsSchema } from "@fenced/core/options";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { AskClient } from "./connect/ask-client.ts";
import { ConnectedServers } from "./connect/connected-servers.ts";
import { serverLimits, type McpServerOptions } from "./mcp-server-options.ts";
import { packageVersion } from "./package-version.ts";
import { addListFiles } from "./tools/list-files.ts";
import { addReadFile } from "./tools/read-file.ts";
import { addRestart } from "./tools/restart.ts";
import { addRunCode } from "./tools/run-code.ts";
import { addWriteFile } from "./tools/write-file.ts";

const serverOptions = optionsSchema({ executor: codeExecutorOption, ...serverLimits });

/**
 * Creates a Model Context Protocol server for an executor, with the tools `run_code`, `wait_for_code`, `cancel_code`,
 * `list_files`, `read_file`, `write_file` and `restart`. Connect it to any transport of the official SDK; it serves one client.
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

/** Offers its tools from the start, or as soon as languages and functions are known. */
export class ExecutorServer extends McpServer {
  readonly #executor: CodeExecutor;
  readonly #options: McpServerOptions;
  #ask = new AskClient(this);
  #hasTools = false;
  #connected: ConnectedServers | undefined;
  #connecting: Promise<void> | undefined;
  #leaving = new AbortController();
  #disconnecting: Promise<void> | undefined;

  constructor(executor: CodeExecutor, options: McpServerOptions) {
    checkOptions(serverOptions, { ...options, executor }, "createMcpServer");
    super({ name: "fenced", version: packageVersion() });
    this.#executor = executor;
    this.#options = options;
    if (knowsLanguages(executor) && (options.connect ?? []).length === 0) this.#addTools();
  }

  /** Opens the connections to other servers, and serves the client. */
  override async connect(transport: Transport): Promise<void> {
    this.#leaving = new AbortController();
    this.#disconnecting = undefined;
    // One client's approvals must not apply to the next client.
    this.#ask = new AskClient(this);
    this.#connecting = this.#prepare(this.#leaving.signal);
    try {
      await this.#connecting;
    } catch (error) {
      await this.disconnect();
      throw error;
    }
    const { onclose } = transport;
    // The SDK offers no other way to observe it, and calls an existing handler.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    transport.onclose = () => {
      onclose?.();
      void this.disconnect();
    };
    await super.connect(transport);
  }

  override async close(): Promise<void> {
    const disconnected = this.disconnect();
    await super.close();
    await disconnected;
  }

  /** Ends the connections to other servers, even those that are still being opened; never rejects. */
  disconnect(): Promise<void> {
    this.#leaving.abort(new DOMException("The server was closed", "AbortError"));
    return (this.#disconnecting ??= this.#disconnect());
  }

  async #disconnect(): Promise<void> {
    await this.#connecting?.catch(() => {});
    await this.#connected?.close();
    this.#connected = undefined;
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    const { connect: targets = [], approveCalls = "writes", connectTimeoutMs: timeoutMs = 30_000 } = this.#options;
    if (!knowsLanguages(this.#executor)) await this.#executor.start({ signal });
    if (targets.length > 0) {
      assertHostFunctions(this.#executor);
      this.#connected = await ConnectedServers.open(targets, { approveCalls, timeoutMs, signal });
    }
    if (!this.#hasTools) this.#addTools();
  }

  #addTools(): void {
    const [executor, options] = [this.#executor, this.#options];
    addRunCode(this, executor, {
      ...options,
      functions: () => this.#connected?.functions ?? [],
      approver: (extra) => this.#ask.approver(extra),
    });
    addListFiles(this, executor, options);
    addReadFile(this, executor, options);
    addWriteFile(this, executor);
    addRestart(this, executor);
    this.#hasTools = true;
  }
}

function knowsLanguages(executor: CodeExecutor): boolean {
  return (knownCapabilities(executor)?.languages ?? []).length > 0;
}

/** @throws InvalidInputError if code in this executor cannot call host functions. */
export function assertHostFunctions({ capabilities }: CodeExecutor): void {
  if (capabilities.hostFunctions.length > 0) return;
  throw new InvalidInputError("Code in this executor cannot call the tools of other servers", {
    remedy:
      "Remove --connect, or use an executor whose `capabilities.hostFunctions` is not empty: Docker, the OS sandbox, SSH or Jupyter.",
  });
}
