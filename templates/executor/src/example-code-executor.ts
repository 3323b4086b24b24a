import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import {
  BaseCodeExecutor,
  DirectoryFiles,
  hostEnvironment,
  killProcesses,
  Leash,
  listenForCalls,
  runChild,
  type Backend,
  type BlockOutcome,
  type BlockRun,
  type Place,
  type PlaceFacts,
  type Sink,
} from "@fenced/executor-kit";
import { exampleExecutorOptions, type ExampleExecutorOptions } from "./example-executor-options.ts";

/** Prefix of the executor's own files in the workspace. */
const ownPrefix = ".fenced-";
/** Where Node looks for the package of functions. */
const packages = "node_modules/";

/**
 * Runs JavaScript blocks, each in a new Node process on this host. **Nothing separates the code from the host.**
 *
 * @example
 * await using executor = new ExampleCodeExecutor();
 * const result = await executor.executeCodeBlocks([{ language: "javascript", code: "console.log(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class ExampleCodeExecutor extends BaseCodeExecutor {
  static readonly component: Component<ExampleCodeExecutor> = defineComponent({
    provider: "@fenced/executor-example:ExampleCodeExecutor",
    componentType: "code_executor",
    schema: exampleExecutorOptions,
    load: (options) => new ExampleCodeExecutor(options),
  });
  readonly #options: ExampleExecutorOptions;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: ExampleExecutorOptions = {}) {
    const checked = checkOptions(exampleExecutorOptions, options, "ExampleCodeExecutor");
    super(checked);
    this.#options = checked;
  }

  // Declare here what the backend cannot do: the conformance suite leaves it out.
  protected readonly offered: ExecutorCapabilities = {
    languages: ["javascript"],
    stateful: false,
    displays: false,
    functions: ["javascript"],
    hostFunctions: ["javascript"],
    stdin: true,
    isolation: "none",
  };

  dumpComponent(): ComponentModel {
    return ExampleCodeExecutor.component.dump({ ...this.#options });
  }

  protected openBackend(): Backend {
    const { cleanupTempFiles = true } = this.#options;
    // What outlives a place, such as a connection to a daemon, would be closed by `close`.
    return { open: () => ExamplePlace.open(this.id, cleanupTempFiles), close: () => Promise.resolve() };
  }
}

/** Where blocks run while the executor is started: a directory, and processes that work in it. */
class ExamplePlace implements Place {
  readonly facts: PlaceFacts = {};
  readonly files: DirectoryFiles;
  readonly #workspace: string;
  readonly #cleanupTempFiles: boolean;
  /** The variable that identifies everything that this place started, wherever it runs. */
  readonly #mark: { readonly name: string; readonly value: string };
  readonly #leash: Leash;
  /** The main processes of all blocks so far. */
  readonly #started = new Set<number>();
  /** Where programs call functions of this one. */
  #calls: { readonly server: Server; readonly address: string } | undefined;

  private constructor(id: string, workspace: string, cleanupTempFiles: boolean) {
    this.#workspace = workspace;
    this.#cleanupTempFiles = cleanupTempFiles;
    this.#mark = { name: "FENCED_SESSION", value: id };
    const isHidden = (file: string): boolean => file.startsWith(ownPrefix) || file.startsWith(packages);
    this.files = new DirectoryFiles(workspace, { isHidden });
    // Even if this program is killed, nothing is left behind.
    this.#leash = new Leash({ mark: this.#mark, remove: [workspace] });
  }

  static async open(id: string, cleanupTempFiles: boolean): Promise<ExamplePlace> {
    const workspace = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-example-"));
    return new ExamplePlace(id, workspace, cleanupTempFiles);
  }

  functionPlaces(): { readonly javascript: string } {
    return { javascript: this.#workspace };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const directory = path.join(this.#workspace, `${ownPrefix}calls`);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    this.#calls ??= await listenForCalls(directory, accept);
    return this.#calls.address;
  }

  async run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const file = block.filename ?? `${ownPrefix}${randomUUID()}.js`;
    await this.files.write(file, block.code);
    const codeFile = path.join(this.#workspace, file);
    try {
      const outcome = await runChild(
        {
          command: [process.execPath, "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", codeFile],
          cwd: this.#workspace,
          env: { ...hostEnvironment([]), ...block.env, [this.#mark.name]: this.#mark.value },
          ...(block.stdin === undefined ? {} : { stdin: block.stdin }),
          onStart: (pid) => this.#started.add(pid),
        },
        sink,
      );
      return { ...outcome, codeFile };
    } finally {
      const temporary = block.filename === undefined && this.#cleanupTempFiles;
      // The block may have removed it, which does not affect its result.
      if (temporary) await this.files.remove(file).catch(() => {});
    }
  }

  async reset(): Promise<void> {
    await killProcesses({ mark: this.#mark, endedRoots: this.#started });
    this.#started.clear();
  }

  async end(): Promise<void> {
    await this.reset();
    this.#calls?.server.close();
    await rm(this.#workspace, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    await this.#leash.release();
  }
}
