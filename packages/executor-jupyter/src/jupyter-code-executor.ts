import {
  canonicalLanguage,
  defineComponent,
  type Component,
  type ComponentModel,
  type ExecutorCapabilities,
} from "@fenced/core";
import { checkOptions, type GivenOptions } from "@fenced/core/options";
import {
  absolutePaths,
  allFileFeatures,
  type Backend,
  BaseCodeExecutor,
  blockEnvironment,
  withoutCallbacks,
} from "@fenced/executor-kit";
import { connectingTo } from "@fenced/executor-kit/supervisor";
import { jupyterExecutorOptions, type JupyterExecutorOptions } from "./jupyter-executor-options.ts";
import { kernelLanguages } from "./kernel/kernel-languages.ts";
import { isJupyterServer, type JupyterServer } from "./servers/jupyter-server.ts";
import { LocalJupyterServer } from "./servers/local-jupyter-server.ts";
import { RemoteServer } from "./servers/remote-server.ts";
import type { ServerSettings } from "./servers/server-settings.ts";
import { JupyterBackend } from "./session/jupyter-backend.ts";
import { type LeftKernel, leftKernelPlace } from "./session/left-kernel.ts";

const provider = "@fenced/executor-jupyter:JupyterCodeExecutor";

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
    provider,
    componentType: "code_executor",
    schema: jupyterExecutorOptions,
    secrets: ["server.token", "server.password", "server.headers"],
    load: (options) => new JupyterCodeExecutor(options),
    connect: connectingTo(provider, leftKernelPlace, (options, left) => {
      const server = { baseUrl: "", ...options.server, ...left.server };
      return new JupyterCodeExecutor({ ...options, server }, left);
    }),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: JupyterExecutorOptions;
  readonly #options: GivenOptions<JupyterExecutorOptions>;
  /** What `workDir` means if it is a directory of this host, which depends on the server. */
  readonly #hostWorkDir: string | undefined;
  readonly #server: JupyterServer;
  readonly #kernelName: string;
  /** The session to connect to, until that has been done. */
  #left: LeftKernel | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: JupyterExecutorOptions = {}, left?: LeftKernel) {
    const checked = checkOptions(jupyterExecutorOptions, options, "JupyterCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
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
      files: language === "python" ? allFileFeatures : ["directories"],
      ...(network !== undefined && { network }),
      isolation,
      // A server on this machine; a container's depends on its runtime.
      ...(isolation === "none" && { kernel: "shared" }),
      ...((checked.keepAliveMs ?? 0) > 0 && { keepAlive: true }),
    };
  }

  dumpComponent(): ComponentModel {
    return JupyterCodeExecutor.component.dump({ ...this.#given });
  }

  protected override dumpForHandle(): ComponentModel {
    const { server, ...rest } = this.#options;
    const { token: _, password: __, headers: ___, ...address } = settingsOf(server) ?? { baseUrl: "" };
    return JupyterCodeExecutor.component.dump({ ...withoutCallbacks(rest), server: address });
  }

  protected openBackend(signal: AbortSignal): Promise<Backend> {
    const left = this.#left;
    this.#left = undefined;
    const { token, password, headers } = settingsOf(this.#options.server) ?? { baseUrl: "" };
    return JupyterBackend.create(
      {
        interruptGraceMs: 2000,
        reconnectTimeoutMs: 10_000,
        keepAliveMs: 0,
        ...this.#options,
        secrets: {
          ...(token !== undefined && { token }),
          ...(password !== undefined && { password }),
          ...(headers && { headers }),
        },
        left,
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

/** The settings of a server that somebody else runs. */
function settingsOf(server: JupyterExecutorOptions["server"]): ServerSettings | undefined {
  return server === undefined || isJupyterServer(server) ? undefined : server;
}
