import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
import { networkReach } from "@fenced/core/network";
import { checkOptions } from "@fenced/core/options";
import {
  absolutePaths,
  commandLineCapabilities,
  ForkableCodeExecutor,
  hostFunctionLanguages,
  languageTable,
  type Backend,
  type LanguageCommand,
} from "@fenced/executor-kit";
import { KubernetesConnector } from "./kubernetes-connector.ts";
import { kubernetesExecutorOptions, type KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";

/**
 * Runs each block in a new process in a pod of a Kubernetes cluster, with `/workspace` as the working directory. The pod is
 * hardened, unless its template says otherwise, and ends with this program, even if this program is killed.
 *
 * @example
 * await using executor = new KubernetesCommandLineCodeExecutor({ namespace: "code" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class KubernetesCommandLineCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<KubernetesCommandLineCodeExecutor> = defineComponent({
    provider: "@fenced/executor-kubernetes:KubernetesCommandLineCodeExecutor",
    componentType: "code_executor",
    schema: kubernetesExecutorOptions,
    load: (options) => new KubernetesCommandLineCodeExecutor(options),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: KubernetesExecutorOptions;
  readonly #options: KubernetesExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  #connector: KubernetesConnector | undefined;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: KubernetesExecutorOptions = {}) {
    const checked = checkOptions(kubernetesExecutorOptions, options, "KubernetesCommandLineCodeExecutor");
    super(checked);
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir", "kubeconfig"]);
    this.#table = languageTable(checked.languages);
    const languages = Object.keys(this.#table);
    this.offered = {
      ...commandLineCapabilities(languages),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: hostFunctionLanguages(languages),
      processes: true,
      ...networkReach(checked.network ?? "open"),
      isolation: "container",
    };
  }

  /** The pod that blocks run in; `undefined` while the executor is not started. A lost pod is replaced by a new one. */
  get podName(): string | undefined {
    return this.#connector?.podName;
  }

  dumpComponent(): ComponentModel {
    return KubernetesCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected async openBackend(): Promise<Backend> {
    this.#connector = new KubernetesConnector(this.request(this.#options, this.#table));
    const backend = this.#connector.backend();
    const { stateful, outputDir } = this.#options;
    return stateful === true ? this.makeStateful(backend, { outputDir, bound: undefined }) : backend;
  }
}
