import type { Duplex } from "node:stream";
import { ExecutorStoppedError, FunctionSetupError, InvalidInputError, type ExecutorCapabilities } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import {
  type BackendFiles,
  blockEnvironment,
  blockSource,
  commandWithoutFile,
  commandLineCapabilities,
  functionVariables,
  hostFunctionLanguages,
  isDiskFull,
  type BackendSession,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type ProgramRun,
} from "@fenced/executor-kit";
import { CallCarrier } from "./run/call-carrier.ts";
import { runRemoteBlock } from "./run/run-block.ts";
import { callEnvironment } from "./ssh-executor-options.ts";
import { SshLink, type LinkRequest } from "./ssh-link.ts";

/** What a session needs. */
export type SessionRequest = Omit<LinkRequest, "ready">;

/**
 * A started executor's session on the remote host. When the connection breaks, everything there ends; a new connection
 * starts afresh.
 */
export class SshSession implements BackendSession {
  readonly #request: SessionRequest;
  #link: SshLink | undefined;
  #connecting: Promise<SshLink> | undefined;
  readonly #closing = new AbortController();
  /** How programs there reach host functions. */
  #calls: { readonly carrier: CallCarrier; readonly address: string } | undefined;

  private constructor(request: SessionRequest) {
    this.#request = request;
  }

  /**
   * Connects to the host.
   *
   * @throws BackendUnavailableError if it cannot be reached or used.
   */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<SshSession> {
    const session = new SshSession(request);
    await session.ready(signal);
    return session;
  }

  get capabilities(): Partial<ExecutorCapabilities> {
    const names = [...this.#current.languages.found.keys()];
    const hostFunctions = this.#current.python === undefined ? [] : hostFunctionLanguages(names);
    return { ...commandLineCapabilities(names), hostFunctions };
  }

  get missing(): ReadonlyMap<string, string> {
    return this.#current.languages.missing;
  }

  get files(): BackendFiles {
    return this.#current.files;
  }

  functionPlaces(): Required<Omit<FunctionPlaces, "owner">> {
    const { directory, workspace } = this.#current;
    return {
      python: `${directory}/functions`,
      pythonPackages: `${directory}/packages`,
      javascript: workspace,
      commands: `${directory}/bin`,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { signal } = this.#closing;
    const { connection, python } = await this.ready(signal);
    if (this.#calls?.carrier.isOpen === true) return this.#calls.address;
    if (python === undefined) {
      throw new FunctionSetupError("Code on this remote host cannot call host functions", {
        remedy: "Install Python 3.8 or later there, or leave the functions out.",
      });
    }
    this.#calls = await CallCarrier.open(connection, { python, accept }, signal);
    return this.#calls.address;
  }

  async *run(block: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { options } = this.#request;
    const link = this.#current;
    const language = link.languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command is configured for ${block.language}`, {
        remedy: "Restart the executor.",
      });
    }
    checkOptions(callEnvironment, { env: block.env }, "executeCodeBlocks");
    const number = link.nextBlock();
    const run = {
      host: options.host,
      env: { ...blockEnvironment, ...block.env, ...this.#functionVariables(link, block) },
      ...(block.stdin === undefined ? {} : { stdin: block.stdin }),
      signal: block.signal,
    };
    const source = {
      file: block.filename ?? link.fileFor(number, language.extension),
      content: blockSource(block.language, block.code),
      temporary: block.filename === undefined && (options.cleanupTempFiles ?? true),
    };
    try {
      return yield* runRemoteBlock(link, { ...run, command: language.command, source, number });
    } catch (error) {
      const inline =
        block.filename === undefined ? commandWithoutFile(block.language, language.command, block.code) : undefined;
      if (!inline || !isDiskFull(error)) throw error;
      return yield* runRemoteBlock(link, { ...run, command: inline, number: link.nextBlock() });
    }
  }

  async *runProgram({ argv, ...program }: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const link = this.#current;
    checkOptions(callEnvironment, { env: program.env }, "processes.start");
    return yield* runRemoteBlock(link, {
      ...program,
      host: this.#request.options.host,
      command: argv,
      number: link.nextBlock(),
      env: { ...blockEnvironment, ...program.env, ...this.#functionVariables(link, program) },
    });
  }

  get workspacePath(): string {
    return this.#current.workspace;
  }

  /** The session's own directory on the host. */
  get directory(): string {
    return this.#current.directory;
  }

  /** True if the host has Python. */
  get hasPython(): boolean {
    return this.#current.python !== undefined;
  }

  async repair(signal: AbortSignal): Promise<void> {
    await this.ready(signal);
    // Code may have ended the carrier of calls: the next call gets a new one.
    if (this.#calls?.carrier.isOpen !== false) return;
    this.#calls = undefined;
    this.#request.onReplaced();
  }

  async reset(signal: AbortSignal): Promise<void> {
    // Code may have stopped the carrier.
    this.#calls?.carrier.close();
    this.#calls = undefined;
    await (await this.ready(signal)).connection.reset();
  }

  async close(): Promise<void> {
    this.#closing.abort(stopped());
    await this.#connecting?.catch(() => {});
    await this.#link?.close();
  }

  /** Stays the same until there is a new link: calls while the host is unreachable retry, and report why they fail. */
  get #current(): SshLink {
    if (this.#link) return this.#link;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  /** The connection; a new one if the last one broke. */
  async ready(signal: AbortSignal): Promise<SshLink> {
    if (this.#closing.signal.aborted) throw stopped();
    if (this.#link && !this.#link.connection.lost) return this.#link;
    this.#connecting ??= this.#connect(joinSignals(signal, this.#closing.signal)).finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connect(signal: AbortSignal): Promise<SshLink> {
    const broken = this.#link;
    await broken?.close();
    const ready = (): Promise<SshLink> => this.ready(this.#closing.signal);
    this.#link = await SshLink.open({ ...this.#request, ready }, signal);
    this.#link.connection.whenLost(this.#request.onLost);
    this.#calls = undefined;
    if (broken) this.#request.onReplaced();
    return this.#link;
  }

  #functionVariables(link: SshLink, { env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">): Record<string, string> {
    if (this.#request.functions.length === 0 && !hostCalls) return {};
    const { path } = link.connection.greeting;
    return functionVariables(this.functionPlaces(), hostCalls, { PATH: path, ...env }, ":");
  }
}

function stopped(): ExecutorStoppedError {
  return new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
}
