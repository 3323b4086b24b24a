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
} from "@fenced/executor-kit";
import { containerNetwork } from "./container/container-options.ts";
import { DockerConnector } from "./docker-connector.ts";
import { dockerExecutorOptions, type DockerExecutorOptions } from "./docker-executor-options.ts";

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
    provider: "@fenced/executor-docker:DockerCommandLineCodeExecutor",
    componentType: "code_executor",
    schema: dockerExecutorOptions,
    load: (options) => new DockerCommandLineCodeExecutor(options),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: DockerExecutorOptions;
  readonly #options: DockerExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: DockerExecutorOptions = {}) {
    const checked = checkOptions(dockerExecutorOptions, options, "DockerCommandLineCodeExecutor");
    super(checked);
    this.#given = checked;
    const { docker } = checked;
    this.#options = {
      ...absolutePaths(checked, ["workDir", "outputDir"]),
      ...(typeof docker === "object" && { docker: absolutePaths(docker, ["certPath"]) }),
    };
    this.#table = languageTable(checked.languages);
    const languages = Object.keys(this.#table);
    this.offered = {
      ...commandLineCapabilities(languages),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: hostFunctionLanguages(languages),
      processes: true,
      ...(checked.reuse === true ? {} : reachOf(checked)),
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

  protected async openBackend(): Promise<Backend> {
    const request = { ...this.request(this.#options, this.#table), containerName: this.containerName };
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
