import {
  canonicalLanguage,
  dumpComponentConfig,
  ExecutorStoppedError,
  FencedError,
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
import { workspacePath } from "./container/container-options.ts";
import { dockerExecutorConfig, type DockerExecutorOptions } from "./docker-executor-options.ts";
import { DockerSession, notWritten, sessionMark, type ReadyContainer } from "./docker-session.ts";
import type { ContainerLanguage } from "./languages.ts";
import { memorySentence } from "./memory-sentence.ts";
import { validateOptions } from "./validate-options.ts";
import type { BlockFile } from "./workspace/block-place.ts";

const provider = "@fenced/executor-docker:DockerCommandLineCodeExecutor";

/**
 * Runs blocks in a container of Docker or Podman: each in a new process, in the work directory, which is `/workspace` in
 * there. The container is hardened, unless told otherwise, and ends with this program, however that ends.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor({ workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class DockerCommandLineCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: DockerExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  #session: DockerSession | undefined;

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: DockerExecutorOptions = {}) {
    super(options);
    this.#options = { ...options };
    this.#table = languageTable(options.languages);
    validateOptions(options);
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): DockerCommandLineCodeExecutor {
    return new DockerCommandLineCodeExecutor(parseComponentConfig(dockerExecutorConfig, config, provider));
  }

  get capabilities(): ExecutorCapabilities {
    const current = this.#session?.current;
    const languages = current ? [...current.languages.found.keys()] : Object.keys(this.#table);
    return {
      languages,
      stateful: false,
      displays: false,
      functions: languages.filter((language) => language === "python" || language === "javascript"),
      stdin: true,
      isolation: "container",
    };
  }

  /** The container's name, also of one that was kept after `stop()`. */
  get containerName(): string {
    return this.#options.containerName ?? `fenced-${this.id}`;
  }

  dumpComponent(): ComponentModel {
    const config = dumpComponentConfig(provider, { ...this.#options });
    return { provider, componentType: DockerCommandLineCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(signal: AbortSignal): Promise<void> {
    const request = {
      options: this.#options,
      id: this.id,
      functionsModule: this.functionsModule,
      table: this.#table,
      givenLanguages: new Set(Object.keys(this.#options.languages ?? {}).map(canonicalLanguage)),
      onReplaced: () => this.forgetFunctions(),
    };
    this.#session = await DockerSession.open(request, signal);
  }

  protected async closeSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.close();
  }

  protected async resetSession(signal: AbortSignal): Promise<void> {
    await this.#opened.reset(signal);
  }

  protected override async repairSession(signal: AbortSignal): Promise<void> {
    await this.#opened.ready(signal);
  }

  protected sessionFiles(): WorkspaceFiles {
    return this.#opened.files;
  }

  protected override functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { directory } = this.#opened;
    return {
      python: `${directory}/functions`,
      pythonPackages: `${directory}/packages`,
      javascript: workspacePath,
    };
  }

  protected override missingLanguage(language: string): string | undefined {
    return this.#session?.current?.languages.missing.get(language);
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const session = this.#opened;
    const ready = await session.ready(run.signal);
    const language = ready.languages.found.get(run.language);
    if (!language) throw new InvalidInputError(`No command runs ${run.language}`, { remedy: "Restart the executor." });
    const file = await writeBlock(ready, run, language.extension);
    const temporary = run.filename === undefined && (this.#options.cleanupTempFiles ?? true);
    try {
      const end = yield* ready.container.runner.run({
        argv: this.#command(language, file),
        env: this.#environment(session, run),
        ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
        signal: run.signal,
      });
      if (end.outOfMemory) yield { type: "stderr", data: memorySentence(this.#options) };
      return { exitCode: end.exitCode, ...(file.onHost === undefined ? {} : { codeFile: file.onHost }) };
    } finally {
      if (temporary) await ready.place.removeBlock(file);
      await ready.place.settle();
    }
  }

  get #opened(): DockerSession {
    if (this.#session) return this.#session;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  #command({ command }: ContainerLanguage, file: BlockFile): string[] {
    const words = [...command, file.inContainer];
    const { initCommand } = this.#options;
    return initCommand === undefined ? words : ["sh", "-c", `{ ${initCommand}\n} && exec "$@"`, "fenced", ...words];
  }

  #environment({ directory }: DockerSession, { env }: BlockRun): Record<string, string> {
    const given = env["PYTHONPATH"];
    const own = [`${directory}/functions`, `${directory}/packages`];
    return {
      ...blockEnvironment,
      ...env,
      ...(this.functions.length === 0 ? {} : { PYTHONPATH: pythonPath(own, given, ":") }),
      [sessionMark]: this.id,
    };
  }
}

async function writeBlock(ready: ReadyContainer, run: BlockRun, extension: string): Promise<BlockFile> {
  try {
    return await ready.place.writeBlock(blockSource(run.language, run.code), extension, run.filename);
  } catch (error) {
    if (FencedError.isInstance(error)) throw error;
    throw notWritten(error);
  }
}
