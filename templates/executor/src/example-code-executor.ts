import { randomUUID } from "node:crypto";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  dumpComponentConfig,
  ExecutorStoppedError,
  parseComponentConfig,
  type ComponentModel,
  type ExecutorCapabilities,
  type JsonObject,
  type WorkspaceFiles,
} from "@fenced/core";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  hostEnvironment,
  killProcesses,
  Leash,
  runChild,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
} from "@fenced/executor-kit";
import { exampleExecutorConfig, type ExampleExecutorOptions } from "./example-executor-options.ts";

const provider = "@fenced/executor-example:ExampleCodeExecutor";
/** What the names of the executor's own files in the workspace begin with. */
const ownPrefix = ".fenced-";

/** Everything that exists while the executor is started. */
interface ExampleSession {
  readonly workspace: string;
  readonly files: DirectoryFiles;
  readonly leash: Leash;
  /** The main processes of all blocks so far. */
  readonly started: Set<number>;
}

/**
 * Runs JavaScript blocks, each in a new Node process of this host. **Nothing stands between the code and the host.**
 *
 * @example
 * await using executor = new ExampleCodeExecutor();
 * const result = await executor.executeCodeBlocks([{ language: "javascript", code: "console.log(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class ExampleCodeExecutor extends BaseCodeExecutor {
  static readonly componentType = "code_executor";
  static readonly componentVersion = 1;
  readonly #options: ExampleExecutorOptions;
  #session: ExampleSession | undefined;

  /** @throws InvalidInputError if an option makes no sense. */
  constructor(options: ExampleExecutorOptions = {}) {
    super(options);
    this.#options = { ...options };
  }

  /** The executor from the config of its component model. */
  static fromConfig(config: JsonObject): ExampleCodeExecutor {
    return new ExampleCodeExecutor(parseComponentConfig(exampleExecutorConfig, config, provider));
  }

  // What does not hold for the backend is said here, and the conformance suite leaves out what it says.
  readonly capabilities: ExecutorCapabilities = {
    languages: ["javascript"],
    stateful: false,
    displays: false,
    functions: [],
    stdin: true,
    isolation: "none",
  };

  dumpComponent(): ComponentModel {
    const config = dumpComponentConfig(provider, { ...this.#options });
    return { provider, componentType: ExampleCodeExecutor.componentType, version: 1, config };
  }

  protected async openSession(): Promise<void> {
    const workspace = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-example-"));
    this.#session = {
      workspace,
      files: new DirectoryFiles(workspace, (file) => file.startsWith(ownPrefix)),
      // If this program dies first, nothing is left behind either.
      leash: new Leash({ mark: this.#mark, remove: [workspace] }),
      started: new Set(),
    };
  }

  protected async closeSession(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#session = undefined;
    await killProcesses({ mark: this.#mark, endedRoots: session.started });
    await rm(session.workspace, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    await session.leash.release();
  }

  protected async resetSession(): Promise<void> {
    const { started } = this.#opened;
    await killProcesses({ mark: this.#mark, endedRoots: started });
    started.clear();
  }

  protected sessionFiles(): WorkspaceFiles {
    return this.#opened.files;
  }

  protected async *runBlock(run: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { workspace, files, started } = this.#opened;
    const file = run.filename ?? `${ownPrefix}${randomUUID()}.js`;
    await files.write(file, run.code);
    const codeFile = path.join(workspace, file);
    try {
      const outcome = yield* runChild({
        command: [process.execPath, "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", codeFile],
        cwd: workspace,
        env: { ...hostEnvironment([]), ...run.env, [this.#mark.name]: this.#mark.value },
        ...(run.stdin === undefined ? {} : { stdin: run.stdin }),
        signal: run.signal,
        onStart: (pid) => started.add(pid),
      });
      return { ...outcome, codeFile };
    } finally {
      const temporary = run.filename === undefined && (this.#options.cleanupTempFiles ?? true);
      // The block may have removed it: its result counts all the same.
      if (temporary) await files.remove(file).catch(() => {});
    }
  }

  /** The variable by which everything that this executor started is found, wherever it went. */
  get #mark(): { readonly name: string; readonly value: string } {
    return { name: "FENCED_SESSION", value: this.id };
  }

  get #opened(): ExampleSession {
    if (this.#session) return this.#session;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }
}
