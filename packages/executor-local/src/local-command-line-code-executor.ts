import { rm } from "node:fs/promises";
import type net from "node:net";
import path from "node:path";
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
  DirectoryFiles,
  hostEnvironment,
  killProcesses,
  languageTable,
  Leash,
  pythonPath,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type LanguageCommand,
} from "@fenced/executor-kit";
import { findLanguages, type FoundLanguages } from "./languages/find-languages.ts";
import { localExecutorConfig, type LocalExecutorOptions } from "./local-executor-options.ts";
import { LocalWorkspace } from "./local-workspace.ts";
import { PipeSupply } from "./processes/pipe-supply.ts";
import { runProcess } from "./processes/run-process.ts";
import { findVirtualEnv, type VirtualEnv } from "./virtual-env.ts";
import { warnUnsandboxed } from "./warn-unsandboxed.ts";

const provider = "@fenced/executor-local:LocalCommandLineCodeExecutor";

/** Everything that exists while the executor is started. */
interface LocalSession {
  readonly workspace: LocalWorkspace;
  readonly pipes: PipeSupply;
  readonly leash: Leash;
  readonly env: Readonly<Record<string, string>>;
  readonly languages: FoundLanguages;
  readonly files: DirectoryFiles;
  /** The main processes of all blocks so far. */
  readonly started: Set<number>;
  /** Pipes that processes of finished blocks still write to. */
  readonly leftOpen: Set<net.Socket>;
}

/**
 * Runs blocks as processes of this host, each in a new process in the work directory, as the user who runs this
 * program. **Nothing stands between the code and the host**: use it for code that you would run yourself, or inside
 * a container or virtual machine. The first one made warns about it (`FENCED_LOCAL`).
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor({ workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class LocalCommandLineCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: LocalExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  readonly #workDirectory: string | undefined;
  readonly #virtualEnv: VirtualEnv | undefined;
  #session: LocalSession | undefined;

  /** @throws InvalidInputError if an option makes no sense or `virtualEnv` is not there. */
  constructor(options: LocalExecutorOptions = {}) {
    super(options);
    this.#options = options;
    this.#table = languageTable(options.languages);
    this.#workDirectory = options.workDir === undefined ? undefined : path.resolve(options.workDir);
    this.#virtualEnv = options.virtualEnv === undefined ? undefined : findVirtualEnv(options.virtualEnv);
    warnUnsandboxed();
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): LocalCommandLineCodeExecutor {
    return new LocalCommandLineCodeExecutor(parseComponentConfig(localExecutorConfig, config, provider));
  }

  get capabilities(): ExecutorCapabilities {
    const languages = this.#session ? [...this.#session.languages.found.keys()] : Object.keys(this.#table);
    return {
      languages,
      stateful: false,
      displays: false,
      functions: languages.filter((language) => language === "python" || language === "javascript"),
      stdin: true,
      isolation: "none",
    };
  }

  dumpComponent(): ComponentModel {
    const config = dumpComponentConfig(provider, { ...this.#options });
    return { provider, componentType: LocalCommandLineCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(): Promise<void> {
    const workspace = await this.#openWorkspace();
    const leash = new Leash({
      mark: this.#mark,
      remove: [workspace.sessionDirectory],
      removePrefixes: [path.join(workspace.workDirectory, workspace.filePrefix)],
      removeOwned: path.join(workspace.workDirectory, "node_modules", this.functionsModule),
    });
    const pipes = new PipeSupply(workspace.sessionDirectory);
    const env = this.#blockEnvironment();
    try {
      const search = { env: this.#inVirtualEnv(env), cwd: workspace.workDirectory, given: this.#given };
      const [languages] = await Promise.all([findLanguages(this.#table, search), pipes.fill()]);
      const offersJavaScript = this.functions.some((each) => each.language === "javascript");
      const functionsPackage = offersJavaScript ? this.functionsModule : undefined;
      const isOwn = (file: string): boolean => workspace.isOwn(file, functionsPackage);
      const files = new DirectoryFiles(workspace.workDirectory, isOwn);
      this.#session = { workspace, leash, pipes, env, languages, files, started: new Set(), leftOpen: new Set() };
    } catch (error) {
      await workspace.remove();
      await leash.release();
      throw error;
    }
  }

  protected async closeSession(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    await this.#endProcesses(session);
    try {
      await session.pipes.settle();
      await session.workspace.removeFunctionsPackage(this.functionsModule, this.id);
      await session.workspace.remove();
    } finally {
      await session.leash.release();
    }
  }

  protected async resetSession(): Promise<void> {
    await this.#endProcesses(this.#opened);
  }

  protected sessionFiles(): WorkspaceFiles {
    return this.#opened.files;
  }

  protected override functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { workspace } = this.#opened;
    return {
      python: workspace.functionsDirectory,
      // Packages go into an environment that was made for it, never into the host's own Python.
      ...(this.#virtualEnv ? {} : { pythonPackages: workspace.packagesDirectory }),
      javascript: workspace.workDirectory,
    };
  }

  protected override missingLanguage(language: string): string | undefined {
    return this.#opened.languages.missing.get(language);
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { workspace, pipes, env, languages, started, leftOpen } = this.#opened;
    const language = languages.found.get(run.language);
    if (!language) throw new InvalidInputError(`No command runs ${run.language}`, { remedy: "Start afresh." });
    const codeFile = await this.#writeBlock(run, language.extension);
    const temporary = run.filename === undefined && (this.#options.cleanupTempFiles ?? true);
    try {
      const spec = {
        command: [...language.command, codeFile] satisfies [string, ...string[]],
        cwd: workspace.workDirectory,
        env: {
          ...this.#inVirtualEnv({ ...env, ...run.env }),
          ...this.#functionsPath(workspace, run.env),
          [this.#mark.name]: this.#mark.value,
        },
        ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
        signal: run.signal,
        scratch: workspace.sessionDirectory,
        onStart: (pid: number) => started.add(pid),
        leftOpen,
      };
      return { ...(yield* runProcess(spec, pipes)), codeFile };
    } finally {
      // The block may have put something else in its place, or locked the directory: its result counts all the same.
      if (temporary) await rm(codeFile, { force: true, recursive: true }).catch(() => {});
    }
  }

  /** The variable by which everything that this executor started is found, wherever it went. */
  get #mark(): { readonly name: string; readonly value: string } {
    return { name: "FENCED_SESSION", value: this.id };
  }

  get #given(): ReadonlySet<string> {
    return new Set(Object.keys(this.#options.languages ?? {}).map(canonicalLanguage));
  }

  get #opened(): LocalSession {
    if (this.#session) return this.#session;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  async #endProcesses({ started, leftOpen }: LocalSession): Promise<void> {
    await killProcesses({ mark: this.#mark, endedRoots: started });
    started.clear();
    for (const socket of leftOpen) socket.destroy();
  }

  async #openWorkspace(): Promise<LocalWorkspace> {
    try {
      return await LocalWorkspace.open(this.#workDirectory, this.id);
    } catch (cause) {
      throw new BackendUnavailableError(`The work directory cannot be made: ${String(cause)}`, {
        remedy: "Give a `workDir` that can be written to, and see that the disk is not full.",
        cause,
      });
    }
  }

  #blockEnvironment(): Record<string, string> {
    return { ...hostEnvironment(this.#options.inheritEnv ?? []), ...blockEnvironment, ...this.env };
  }

  /** Also over a `PATH` that the user gave. */
  #inVirtualEnv(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    if (!this.#virtualEnv) return env;
    const { bin, directory } = this.#virtualEnv;
    const searchPath = [bin, ...(env["PATH"] === undefined ? [] : [env["PATH"]])];
    return { ...env, VIRTUAL_ENV: directory, PATH: searchPath.join(path.delimiter) };
  }

  /** Function modules stand in front of what the user put on Python's path. */
  #functionsPath(workspace: LocalWorkspace, env: Readonly<Record<string, string>>): Record<string, string> {
    if (this.functions.length === 0) return {};
    const own = [workspace.functionsDirectory, workspace.packagesDirectory];
    const given = env["PYTHONPATH"] ?? this.#opened.env["PYTHONPATH"];
    return { PYTHONPATH: pythonPath(own, given) };
  }

  async #writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<string> {
    const { workspace, files } = this.#opened;
    const source = blockSource(language, code);
    if (filename === undefined) return workspace.writeTemporary(source, extension);
    await files.write(filename, source);
    return path.join(workspace.workDirectory, filename);
  }
}
