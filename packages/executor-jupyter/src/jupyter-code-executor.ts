import {
  BackendUnavailableError,
  canonicalLanguage,
  dumpComponentConfig,
  ExecutorStoppedError,
  InvalidInputError,
  parseComponentConfig,
  type ComponentModel,
  type ExecutorCapabilities,
  type JsonObject,
  type WorkspaceFiles,
} from "@fenced/core";
import {
  BaseCodeExecutor,
  blockEnvironment,
  blockSource,
  renderPythonModule,
  timeIsUp,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
} from "@fenced/executor-kit";
import { jupyterExecutorConfig, type JupyterExecutorOptions } from "./jupyter-executor-options.ts";
import { KernelLostError } from "./kernel/kernel-end.ts";
import { isJupyterServer, type JupyterServer } from "./servers/jupyter-server.ts";
import { LocalJupyterServer } from "./servers/local-jupyter-server.ts";
import { openServer } from "./servers/open-server.ts";
import { RemoteServer } from "./servers/remote-server.ts";
import { JupyterSession } from "./session/jupyter-session.ts";
import type { LiveKernel } from "./session/live-kernel.ts";
import { runCell } from "./session/run-cell.ts";

const provider = "@fenced/executor-jupyter:JupyterCodeExecutor";

/**
 * Runs blocks in a Jupyter kernel, which keeps variables from block to block and from call to call, and shows plots and
 * tables. One kernel an executor; many executors may share a server. On a Python kernel bash and sh blocks run too.
 *
 * @example
 * await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer() });
 * await executor.executeCodeBlocks([{ language: "python", code: "x = 6" }]);
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "x * 7" }]);
 * console.log(result.output); // "42\n"
 */
export class JupyterCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: JupyterExecutorOptions;
  readonly #server: JupyterServer;
  readonly #kernelName: string;
  readonly #interruptGraceMs: number;
  readonly #reconnectTimeoutMs: number;
  #session: JupyterSession | undefined;
  /** The kernel in which the functions are variables as well. */
  #offered: LiveKernel | undefined;
  #functionsLoaded = false;

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: JupyterExecutorOptions = {}) {
    super(options);
    this.#options = options;
    this.#kernelName = options.kernelName ?? "python3";
    this.#interruptGraceMs = milliseconds("interruptGraceMs", options.interruptGraceMs ?? 2000);
    this.#reconnectTimeoutMs = milliseconds("reconnectTimeoutMs", options.reconnectTimeoutMs ?? 10_000);
    this.#server = serverOf(options);
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): JupyterCodeExecutor {
    const { server, ...options } = parseComponentConfig(jupyterExecutorConfig, config, provider);
    return new JupyterCodeExecutor({ ...options, ...(server ? { server: openServer(server) } : {}) });
  }

  get capabilities(): ExecutorCapabilities {
    const own = this.#session ? canonicalLanguage(this.#session.language) : languageOf(this.#kernelName);
    const shells = this.#session ? this.#session.shells : ["bash", "sh"];
    const python = own === "python";
    return {
      languages: python ? [own, ...shells] : [own],
      stateful: true,
      displays: true,
      functions: python ? ["python"] : [],
      stdin: true,
      isolation: this.#server.isolation,
    };
  }

  dumpComponent(): ComponentModel {
    const secrets = ["server.token", "server.headers"];
    const config = dumpComponentConfig(provider, { ...this.#options }, { secrets });
    return { provider, componentType: JupyterCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(signal: AbortSignal): Promise<void> {
    this.#functionsLoaded = false;
    const { kernelId, workDir, outputDir } = this.#options;
    this.#session = await JupyterSession.open(
      {
        id: this.id,
        server: this.#server,
        kernelName: this.#kernelName,
        ...(kernelId === undefined ? {} : { kernelId }),
        ...(workDir === undefined ? {} : { workDir }),
        ...(outputDir === undefined ? {} : { outputDir }),
        reconnectTimeoutMs: this.#reconnectTimeoutMs,
        env: { ...blockEnvironment, ...this.env },
        modules: () => this.#functionModules(),
      },
      signal,
    );
  }

  protected async closeSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#offered = undefined;
    await session?.close();
  }

  protected async resetSession(signal: AbortSignal): Promise<void> {
    this.#functionsLoaded = false;
    this.#offered = undefined;
    await this.#opened.reset(signal);
  }

  protected sessionFiles(): WorkspaceFiles {
    return this.#opened.files;
  }

  protected override functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { functionsDirectory } = this.#opened;
    return functionsDirectory === "" ? {} : { python: functionsDirectory };
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const session = this.#opened;
    const live = await this.#kernel(session, run.signal);
    if (!live || run.signal.aborted) return { exitCode: 1 };
    try {
      if (run.filename !== undefined) await session.files.write(run.filename, blockSource(run.language, run.code));
      await this.#offerFunctions(live);
      const outcome = yield* this.#runIn(session, live, run);
      // Nobody hears how an aborted block ended: the next one has to tell.
      return { ...outcome, stateLost: isHeard(run.signal) && session.takeStateLost() };
    } catch (error) {
      if (!(error instanceof KernelLostError)) throw error;
      return yield* this.#afterLoss(error, session, live);
    }
  }

  async *#runIn(
    session: JupyterSession,
    live: LiveKernel,
    run: BlockRun,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    if (!live.python && Object.keys(run.env).length > 0) {
      throw new InvalidInputError(`The ${live.kernel.language} kernel takes no environment variables`, {
        remedy: "Leave `env` out, or set them in the block.",
      });
    }
    const own = Object.entries(run.env).filter(([name, value]) => this.env[name] !== value);
    const helper = own.length > 0 ? live.python?.helper : undefined;
    await helper?.ask("push_env", { env: Object.fromEntries(own) });
    try {
      return yield* runCell(run, { session, live, interruptGraceMs: this.#interruptGraceMs });
    } finally {
      if (!live.kernel.end) await helper?.ask("pop_env");
    }
  }

  /** The block could not be run to its end: the next one gets a new kernel. */
  async *#afterLoss(
    { end }: KernelLostError,
    session: JupyterSession,
    live: LiveKernel,
  ): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    await session.discard(live);
    if (end.kind === "unreachable") {
      throw new BackendUnavailableError(`The block's end is unknown: ${end.reason}`, {
        remedy: "See that the server runs; the next call starts a new kernel, without the variables of this one.",
      });
    }
    yield { type: "stderr", data: `The block did not end: ${end.reason}. Variables are lost.\n` };
    return { exitCode: 1, stateLost: session.takeStateLost() };
  }

  /** `undefined`: the run was aborted first. */
  async #kernel(session: JupyterSession, signal: AbortSignal): Promise<LiveKernel | undefined> {
    try {
      return await session.kernel(signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** Functions that were set up are variables, too, in every kernel of the session. */
  async #offerFunctions(live: LiveKernel): Promise<void> {
    if (this.functions.length === 0 || this.#offered === live || !live.python) return;
    const names = this.functions.map((each) => each.name);
    const offered = await live.python.helper.ask("offer", { module: this.functionsModule, names });
    if (offered !== true) return;
    this.#offered = live;
    this.#functionsLoaded = true;
  }

  #functionModules(): Readonly<Record<string, string>> | undefined {
    if (this.functions.length === 0) return undefined;
    return this.#functionsLoaded ? { [this.functionsModule]: renderPythonModule(this.functions) } : {};
  }

  get #opened(): JupyterSession {
    if (this.#session) return this.#session;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }
}

function isHeard(signal: AbortSignal): boolean {
  return !signal.aborted || signal.reason === timeIsUp;
}

function serverOf({ server }: JupyterExecutorOptions): JupyterServer {
  if (server === undefined) return new LocalJupyterServer();
  return isJupyterServer(server) ? server : new RemoteServer(server);
}

/** Before the kernel has said what it runs, its name has to do. */
function languageOf(kernelName: string): string {
  return /python/i.test(kernelName) ? "python" : canonicalLanguage(kernelName);
}

function milliseconds(name: string, value: number): number {
  if (value >= 0 && value < 2 ** 31) return value;
  throw new InvalidInputError(`${name} is ${value}`, { remedy: "Give a number of milliseconds, from 0." });
}
