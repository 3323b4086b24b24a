import path from "node:path";
import {
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
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
} from "@fenced/executor-kit";
import { acaExecutorConfig, type ACAExecutorOptions } from "./aca-executor-options.ts";
import { currentVersion } from "./api/wire-types.ts";
import { RemoteFiles } from "./files/remote-files.ts";
import { checkPackages } from "./functions/check-packages.ts";
import { baseUrl } from "./http/base-url.ts";
import { explainError } from "./http/explain-error.ts";
import { openPool, type OpenPool } from "./open-pool.ts";
import { RemoteRun } from "./remote-run.ts";
import { lastingFiles } from "./session/lasting-files.ts";
import { isLogName } from "./session/output-log.ts";
import { poolLanguages } from "./session/pool-language.ts";
import { defaultCredential, tokenFromVariable, type AccessTokenSource } from "./token-credential.ts";

const provider = "@fenced/executor-aca:ACADynamicSessionsCodeExecutor";

/**
 * Runs blocks in a session of an Azure Container Apps session pool: remote, isolated by a hypervisor, with variables
 * that stay from block to block. Output comes when a block has ended. A block that has to be ended takes its session
 * with it: the files are carried into a new one, the variables are lost (`stateLost`).
 *
 * @example
 * await using executor = new ACADynamicSessionsCodeExecutor({
 *   poolManagementEndpoint: "https://westeurope.dynamicsessions.io/subscriptions/.../sessionPools/mine",
 * });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class ACADynamicSessionsCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: ACAExecutorOptions;
  readonly #baseUrl: URL;
  readonly #credential: AccessTokenSource;
  #pool: OpenPool | undefined;

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: ACAExecutorOptions) {
    super(options);
    this.#options = options;
    this.#baseUrl = baseUrl(options.poolManagementEndpoint);
    validate(options);
    const { credential, tokenVariable } = options;
    this.#credential =
      credential ?? (tokenVariable === undefined ? defaultCredential() : tokenFromVariable(tokenVariable));
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): ACADynamicSessionsCodeExecutor {
    return new ACADynamicSessionsCodeExecutor(parseComponentConfig(acaExecutorConfig, config, provider));
  }

  get capabilities(): ExecutorCapabilities {
    return (this.#pool?.language ?? poolLanguages[this.#options.poolType ?? "PythonLTS"]).capabilities;
  }

  /** The identifier of the current session; `undefined` while there is none. */
  get sessionId(): string | undefined {
    return this.#pool?.place.identifier;
  }

  /**
   * Uploads files of the host, each under its own base name, to where blocks find them.
   *
   * @param localPaths - relative to `workDir`.
   * @throws FileNotFoundError if one is not there, InvalidInputError if one is larger than 128 MB; then none is uploaded.
   */
  async uploadFiles(localPaths: readonly string[]): Promise<void> {
    await this.files.upload(localPaths.map((each) => path.resolve(this.#options.workDir ?? ".", each)));
  }

  /**
   * Downloads files of the session, each under its relative path.
   *
   * @param toDirectory - relative to `workDir`. Default: `workDir` itself, or else this process's directory.
   * @returns their absolute paths.
   * @throws FileNotFoundError if one is not there.
   */
  async downloadFiles(paths: readonly string[], toDirectory = "."): Promise<string[]> {
    return this.files.download(paths, path.resolve(this.#options.workDir ?? ".", toDirectory));
  }

  /** The paths of the session's files, relative to where blocks run. */
  async getFileList(): Promise<string[]> {
    return (await this.files.list()).map((file) => file.path);
  }

  /** Names of the packages that blocks can import without installing anything. */
  async getAvailablePackages(): Promise<readonly string[]> {
    await this.start();
    return this.#explained(this.#opened.packages());
  }

  dumpComponent(): ComponentModel {
    const config = dumpComponentConfig(provider, { ...this.#options }, { secrets: ["credential"] });
    return { provider, componentType: ACADynamicSessionsCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(signal: AbortSignal): Promise<void> {
    this.#pool = openPool({
      id: this.id,
      baseUrl: this.#baseUrl,
      credential: this.#credential,
      version: this.#options.apiVersion ?? currentVersion,
      poolType: this.#options.poolType,
      sessionId: this.#options.sessionId,
      retryForMs: this.#options.retryForMs ?? 30_000,
    });
    await this.#explained(this.#pool.connect(signal));
  }

  protected async closeSession(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool) await this.#explained(pool.close(this.#options.keepSession ?? false));
  }

  protected async resetSession(): Promise<void> {
    const { place } = this.#opened;
    await this.#explained(place.replace(place.current));
    place.functionsMissing = false;
    place.lossUnreported = false;
  }

  /** @param signal - ends what the files are asked for. */
  protected sessionFiles(signal?: AbortSignal): WorkspaceFiles {
    const pool = this.#opened;
    const session = async () => {
      await this.#explained(pool.place.session(signal));
      return lastingFiles(pool.place, signal);
    };
    return new RemoteFiles(session, isLogName);
  }

  protected override async functionPlaces(): Promise<Omit<FunctionPlaces, "owner">> {
    const needed = this.functions.some((each) => (each.requirements.pythonPackages ?? []).length > 0);
    if (needed) checkPackages(this.functions, await this.#explained(this.#opened.packages()));
    return { python: `/tmp/${this.#opened.logName}.functions` };
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const pool = this.#opened;
    const writeFile = async () => {
      if (run.filename !== undefined) await this.sessionFiles(run.signal).write(run.filename, run.code);
    };
    await writeFile();
    const remote = new RemoteRun(run, pool, {
      maxOutputBytes: this.maxOutputBytes,
      showsResult: this.#options.suppressResultOutput !== true,
      pictures: async () => this.#options.workDir ?? (await pool.scratch.path()),
      writeFile,
      setUpFunctions: () => this.setUpFunctionsAgain(),
    });
    try {
      return yield* remote.events();
    } catch (error) {
      throw explainError(error);
    }
  }

  get #opened(): OpenPool {
    if (this.#pool) return this.#pool;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  async #explained<T>(promise: Promise<T>): Promise<T> {
    return promise.catch((error: unknown) => {
      throw explainError(error);
    });
  }
}

export { ACADynamicSessionsCodeExecutor as AzureContainerCodeExecutor };

function validate({ sessionId, credential, tokenVariable, retryForMs }: ACAExecutorOptions): void {
  if (sessionId !== undefined && (sessionId.length < 4 || sessionId.length > 128)) {
    throw new InvalidInputError(`The sessionId has ${sessionId.length} characters`, { remedy: "Give 4 to 128." });
  }
  if (credential !== undefined && tokenVariable !== undefined) {
    throw new InvalidInputError("There are both a credential and a tokenVariable", { remedy: "Give one of them." });
  }
  if (retryForMs !== undefined && !(retryForMs >= 0)) {
    throw new InvalidInputError(`retryForMs is ${retryForMs}`, { remedy: "Give a number of milliseconds, from 0." });
  }
}
