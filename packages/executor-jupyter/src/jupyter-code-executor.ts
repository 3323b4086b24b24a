import {
  canonicalLanguage,
  defineComponent,
  type Component,
  type ComponentModel,
  type ExecutorCapabilities,
} from "@fenced/core";
import { checkOptions, type GivenOptions } from "@fenced/core/options";
import { absolutePaths, BaseCodeExecutor, blockEnvironment, type Backend } from "@fenced/executor-kit";
import { jupyterExecutorOptions, type JupyterExecutorOptions } from "./jupyter-executor-options.ts";
import { kernelLanguages } from "./kernel/kernel-languages.ts";
import { isJupyterServer, type JupyterServer } from "./servers/jupyter-server.ts";
import { LocalJupyterServer } from "./servers/local-jupyter-server.ts";
import { RemoteServer } from "./servers/remote-server.ts";
import { JupyterBackend } from "./session/jupyter-backend.ts";

/**
 * Runs blocks in a Jupyter kernel, which keeps variables from block to block and from call to call, and shows plots
 * and tables. Each executor has one kernel; many executors may share a server. A Python kernel also runs bash and sh
 * blocks.
 *
 * @example
 * await using executor = new JupyterCodeExecutor({ server: new LocalJupyterServer() });
 * await executor.executeCodeBlocks([{ language: "python", code: "x = 6" }]);
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "x * 7" }]);
 * console.log(result.output); // "42\n"
 */
export class JupyterCodeExecutor extends BaseCodeExecutor {
  static readonly component: Component<JupyterCodeExecutor> = defineComponent({
    provider: "@fenced/executor-jupyter:JupyterCodeExecutor",
    componentType: "code_executor",
    schema: jupyterExecutorOptions,
    secrets: ["server.token", "server.password", "server.headers"],
    load: (options) => new JupyterCodeExecutor(options),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: JupyterExecutorOptions;
  readonly #options: GivenOptions<JupyterExecutorOptions>;
  /** What `workDir` means if it is a directory of this host, which depends on the server. */
  readonly #hostWorkDir: string | undefined;
  readonly #server: JupyterServer;
  readonly #kernelName: string;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: JupyterExecutorOptions = {}) {
    const checked = checkOptions(jupyterExecutorOptions, options, "JupyterCodeExecutor");
    super(checked);
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir"]);
    this.#hostWorkDir = absolutePaths(checked, ["workDir"]).workDir;
    this.#kernelName = checked.kernelName ?? "python3";
    this.#server = serverOf(checked);
    // Until the kernel reports its language, guess it from the name.
    const language = /python/i.test(this.#kernelName) ? "python" : canonicalLanguage(this.#kernelName);
    const { network, isolation } = this.#server;
    this.offered = {
      ...kernelLanguages(language, ["bash", "sh"]),
      stateful: true,
      displays: true,
      stdin: true,
      ...(network !== undefined && { network }),
      isolation,
    };
  }

  dumpComponent(): ComponentModel {
    return JupyterCodeExecutor.component.dump({ ...this.#given });
  }

  protected openBackend(signal: AbortSignal): Promise<Backend> {
    return JupyterBackend.create(
      {
        interruptGraceMs: 2000,
        reconnectTimeoutMs: 10_000,
        ...this.#options,
        hostWorkDir: this.#hostWorkDir,
        id: this.id,
        server: this.#server,
        kernelName: this.#kernelName,
        env: { ...blockEnvironment, ...this.env },
        ownEnv: this.env,
        functions: this.functions,
        functionsModule: this.functionsModule,
      },
      signal,
    );
  }
}

function serverOf({ server }: JupyterExecutorOptions): JupyterServer {
  if (server === undefined) return new LocalJupyterServer();
  return isJupyterServer(server) ? server : new RemoteServer(server);
}
