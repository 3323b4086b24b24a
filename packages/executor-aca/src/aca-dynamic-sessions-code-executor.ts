import {
  defineComponent,
  ExecutorStoppedError,
  type Component,
  type ComponentModel,
  type ExecutorCapabilities,
} from "@fenced/core";
import { checkOptions, type GivenOptions } from "@fenced/core/options";
import { absolutePaths, BaseCodeExecutor } from "@fenced/executor-kit";
import { AcaBackend } from "./aca-backend.ts";
import { acaExecutorOptions, type ACAExecutorOptions } from "./aca-executor-options.ts";
import { currentVersion } from "./api/wire-types.ts";
import { baseUrl } from "./http/base-url.ts";
import { capabilitiesOf } from "./open-pool.ts";
import { poolLanguages } from "./session/pool-language.ts";
import { defaultCredential, tokenFromVariable, type AccessTokenSource } from "./token-credential.ts";

/**
 * Runs blocks in a session of an Azure Container Apps session pool: remote, isolated by a hypervisor, with variables
 * that persist from block to block. If a block that must end early cannot be interrupted, its session ends too: the
 * files are carried into a new one, but the variables are lost (`stateLost`).
 *
 * @example
 * await using executor = new ACADynamicSessionsCodeExecutor({
 *   poolManagementEndpoint: "https://westeurope.dynamicsessions.io/subscriptions/.../sessionPools/mine",
 * });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class ACADynamicSessionsCodeExecutor extends BaseCodeExecutor {
  static readonly component: Component<ACADynamicSessionsCodeExecutor> = defineComponent({
    provider: "@fenced/executor-aca:ACADynamicSessionsCodeExecutor",
    componentType: "code_executor",
    schema: acaExecutorOptions,
    secrets: ["credential"],
    load: (options) => new ACADynamicSessionsCodeExecutor(options),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: ACAExecutorOptions;
  readonly #options: GivenOptions<ACAExecutorOptions>;
  readonly #baseUrl: URL;
  readonly #credential: AccessTokenSource;
  #backend: AcaBackend | undefined;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: ACAExecutorOptions) {
    const checked = checkOptions(acaExecutorOptions, options, "ACADynamicSessionsCodeExecutor");
    super(checked);
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir"]);
    this.offered = capabilitiesOf(poolLanguages[checked.poolType ?? "PythonLTS"], checked);
    const { credential, tokenVariable, poolManagementEndpoint } = checked;
    this.#baseUrl = baseUrl(poolManagementEndpoint);
    this.#credential =
      credential ?? (tokenVariable === undefined ? defaultCredential() : tokenFromVariable(tokenVariable));
  }

  /** The identifier of the current session; before the start, the one that you gave, if any. */
  get sessionId(): string | undefined {
    return this.place ? this.#backend?.identifier : this.#options.sessionId;
  }

  /**
   * Uploads files from the host, each under its base name, to the directory in which blocks run.
   *
   * @param localPaths - relative to this process's directory.
   * @throws FileNotFoundError if one is missing, InvalidInputError if one is larger than 128 MB; in both cases, none is
   * uploaded.
   */
  async uploadFiles(localPaths: readonly string[]): Promise<void> {
    await this.files.upload(localPaths);
  }

  /**
   * Downloads files from the session, each to its relative path.
   *
   * @param toDirectory - relative to this process's directory. Default: `outputDir`, or else this process's directory.
   * @returns their absolute paths.
   * @throws FileNotFoundError if one is missing.
   */
  async downloadFiles(
    paths: readonly string[],
    toDirectory: string = this.#options.outputDir ?? ".",
  ): Promise<string[]> {
    return this.files.download(paths, toDirectory);
  }

  /** The paths of the session's files, relative to where blocks run. */
  async getFileList(): Promise<string[]> {
    return (await this.files.list()).map((file) => file.path);
  }

  /** Names of the packages that blocks can import without installing anything. */
  async getAvailablePackages(): Promise<readonly string[]> {
    await this.start();
    if (this.place && this.#backend) return this.#backend.packages();
    throw new ExecutorStoppedError("The executor was stopped during this call", { remedy: "Call start() first." });
  }

  dumpComponent(): ComponentModel {
    return ACADynamicSessionsCodeExecutor.component.dump({ ...this.#given });
  }

  protected async openBackend(): Promise<AcaBackend> {
    const { apiVersion = currentVersion, suppressResultOutput = false } = this.#options;
    this.#backend = await AcaBackend.create({
      retryForMs: 30_000,
      keepSession: false,
      ...this.#options,
      id: this.id,
      baseUrl: this.#baseUrl,
      credential: this.#credential,
      version: apiVersion,
      showsResult: !suppressResultOutput,
      maxOutputBytes: this.maxOutputBytes,
      functions: this.functions,
      functionsModule: this.functionsModule,
    });
    return this.#backend;
  }
}

export { ACADynamicSessionsCodeExecutor as AzureContainerCodeExecutor };
