import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
import { networkReach } from "@fenced/core/network";
import { checkOptions } from "@fenced/core/options";
import { readConnection } from "@fenced/docker-daemon";
import {
  absolutePaths,
  commandLineCapabilities,
  ForkableCodeExecutor,
  hostFunctionLanguages,
  languageTable,
  type Backend,
  type LanguageCommand,
  withoutCallbacks,
} from "@fenced/executor-kit";
import { connectingTo, supervisedUsage } from "@fenced/executor-kit/supervisor";
import { containerNetwork } from "./container/container-options.ts";
import { DockerConnector } from "./docker-connector.ts";
import { dockerExecutorOptions, type DockerExecutorOptions } from "./docker-executor-options.ts";
import { type LeftContainer, leftPlace } from "./left-session.ts";

const provider = "@fenced/executor-docker:DockerCommandLineCodeExecutor";

/**
 * Runs each block in a new process in a Docker or Podman container, with `/workspace` as the working directory. The
 * container is hardened by default, and ends with this program, however that ends.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor({ workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class DockerCommandLineCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<DockerCommandLineCodeExecutor> = defineComponent({
    provider,
    componentType: "code_executor",
    schema: dockerExecutorOptions,
    load: (options) => new DockerCommandLineCodeExecutor(options),
    connect: connectingTo(
      provider,
      leftPlace,
      (options, left) => new DockerCommandLineCodeExecutor(options, left),
      (options) => containerNetwork(options).mode === "none",
    ),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: DockerExecutorOptions;
  readonly #options: DockerExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;

  /** The session to connect to, until that has been done. */
  #left: LeftContainer | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: DockerExecutorOptions = {}, left?: LeftContainer) {
    const checked = checkOptions(dockerExecutorOptions, options, "DockerCommandLineCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
    this.#given = checked;
    const { docker } = checked;
    this.#options = {
      ...absolutePaths(checked, ["workDir", "outputDir"]),
      ...(typeof docker === "object" && { docker: absolutePaths(docker, ["certPath"]) }),
    };
    this.#table = languageTable(checked.languages);
    const languages = Object.keys(this.#table);
    const reach = checked.reuse === true ? {} : reachOf(checked);
    this.offered = {
      ...commandLineCapabilities(languages),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: hostFunctionLanguages(languages),
      processes: true,
      terminals: true,
      addresses: true,
      ...((checked.keepAliveMs ?? 0) > 0 && { keepAlive: true }),
      ...reach,
      ...supervisedUsage({ ...reach, stateful: checked.stateful === true }),
      isolation: "container",
    };
    if (docker !== undefined) readConnection(docker);
  }

  /** The container's name; also valid for a container that is kept after `stop()`. */
  get containerName(): string {
    return this.#options.containerName ?? `fenced-${this.id}`;
  }

  dumpComponent(): ComponentModel {
    return DockerCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected override dumpForHandle(): ComponentModel {
    return DockerCommandLineCodeExecutor.component.dump(withoutCallbacks({ ...this.#options }));
  }

  protected async openBackend(): Promise<Backend> {
    const left = this.#left;
    this.#left = undefined;
    const request = { ...this.request(this.#options, this.#table), containerName: this.containerName, left };
    const connector = await DockerConnector.open(request);
    const backend = connector.backend();
    if (this.#options.stateful !== true) return backend;
    return this.makeStateful(backend, { outputDir: this.#options.outputDir, bound: connector.boundDirectory });
  }
}

/** A container that is reused keeps the network that it has. */
function reachOf(options: DockerExecutorOptions): Pick<ExecutorCapabilities, "network"> {
  const { mode, policy } = containerNetwork(options);
  return networkReach(policy ?? (mode === "none" ? "none" : "open"));
}
