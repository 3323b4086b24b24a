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
  blockEnvironment,
  blockSource,
  languageTable,
  pythonPath,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type LanguageCommand,
} from "@fenced/executor-kit";
import { runRemoteBlock } from "./run/run-block.ts";
import { sshExecutorConfig, type SshExecutorOptions } from "./ssh-executor-options.ts";
import { SshSession } from "./ssh-session.ts";
import { assertVariables, validateOptions } from "./validate-options.ts";

const provider = "@fenced/executor-ssh:SshCommandLineCodeExecutor";

/**
 * Runs blocks on another host, over the system's `ssh`: each in a new process, in the work directory there, as the user
 * who logs in. What runs there ends with the connection, and the connection with this program, however that ends.
 *
 * @example
 * await using executor = new SshCommandLineCodeExecutor({ host: "build.example.com", workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class SshCommandLineCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: SshExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  #session: SshSession | undefined;
  #repairing: Promise<void> | undefined;

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: SshExecutorOptions) {
    super(options);
    this.#options = { ...options };
    this.#table = languageTable(options.languages);
    validateOptions(options);
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): SshCommandLineCodeExecutor {
    return new SshCommandLineCodeExecutor(parseComponentConfig(sshExecutorConfig, config, provider));
  }

  get capabilities(): ExecutorCapabilities {
    const languages = this.#session ? [...this.#session.languages.found.keys()] : Object.keys(this.#table);
    return {
      languages,
      stateful: false,
      displays: false,
      functions: languages.filter((language) => language === "python" || language === "javascript"),
      stdin: true,
      isolation: "remote",
    };
  }

  dumpComponent(): ComponentModel {
    const config = dumpComponentConfig(provider, { ...this.#options });
    return { provider, componentType: SshCommandLineCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(signal: AbortSignal): Promise<void> {
    const request = {
      options: this.#options,
      owner: this.id,
      functionsModule: this.functionsModule,
      table: this.#table,
      ready: async () => {
        // Nothing connects again on behalf of an executor that has been stopped meanwhile.
        void this.#opened;
        await this.repairSession(new AbortController().signal);
        return this.#opened;
      },
    };
    this.#session = await SshSession.open(request, signal);
  }

  protected async closeSession(): Promise<void> {
    await this.#repairing?.catch(() => {});
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  protected async resetSession(signal: AbortSignal): Promise<void> {
    await this.repairSession(signal);
    await this.#opened.connection.reset();
  }

  /** A connection that broke took everything on the host with it; a new one starts afresh. */
  protected override async repairSession(signal: AbortSignal): Promise<void> {
    const broken = this.#session;
    if (broken && !broken.connection.lost) return;
    this.#repairing ??= this.#connectAgain(broken, signal).finally(() => {
      this.#repairing = undefined;
    });
    await this.#repairing;
  }

  protected sessionFiles(): WorkspaceFiles {
    return this.#opened.files;
  }

  protected override functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { directory, workspace } = this.#opened;
    return { python: `${directory}/functions`, pythonPackages: `${directory}/packages`, javascript: workspace };
  }

  protected override missingLanguage(language: string): string | undefined {
    return this.#session?.languages.missing.get(language);
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const session = this.#opened;
    const language = session.languages.found.get(run.language);
    if (!language) throw new InvalidInputError(`No command runs ${run.language}`, { remedy: "Start afresh." });
    assertVariables(run.env);
    const number = session.nextBlock();
    return yield* runRemoteBlock(session, {
      host: this.#options.host,
      command: language.command,
      file: run.filename ?? session.fileFor(number, language.extension),
      temporary: run.filename === undefined && (this.#options.cleanupTempFiles ?? true),
      number,
      source: blockSource(run.language, run.code),
      env: { ...blockEnvironment, ...run.env, ...this.#functionsPath(session, run) },
      ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
      signal: run.signal,
    });
  }

  get #opened(): SshSession {
    if (this.#session) return this.#session;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  async #connectAgain(broken: SshSession | undefined, signal: AbortSignal): Promise<void> {
    // It stays the session until there is another: who comes while the host is away tries again, and hears why.
    await broken?.close();
    await this.openSession(signal);
    this.forgetFunctions();
  }

  #functionsPath({ directory }: SshSession, { env }: BlockRun): Record<string, string> {
    if (this.functions.length === 0) return {};
    return { PYTHONPATH: pythonPath([`${directory}/functions`, `${directory}/packages`], env["PYTHONPATH"], ":") };
  }
}
