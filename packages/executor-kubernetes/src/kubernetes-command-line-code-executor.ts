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
  withoutCallbacks,
} from "@fenced/executor-kit";
import { connectingTo, supervisedUsage } from "@fenced/executor-kit/supervisor";
import { KubernetesConnector } from "./kubernetes-connector.ts";
import { kubernetesExecutorOptions, type KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";
import { leftPlace, type LeftPod } from "./left-session.ts";

const provider = "@fenced/executor-kubernetes:KubernetesCommandLineCodeExecutor";

/**
 * Runs each block in a new process in a pod of a Kubernetes cluster, with `/workspace` as the working directory. The pod is
 * hardened, unless its template says otherwise, and ends with this program, even if this program is killed, unless
 * `keepAliveMs` lets it outlive it.
 *
 * @example
 * await using executor = new KubernetesCommandLineCodeExecutor({ namespace: "code" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class KubernetesCommandLineCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<KubernetesCommandLineCodeExecutor> = defineComponent({
    provider,
    componentType: "code_executor",
    schema: kubernetesExecutorOptions,
    load: (options) => new KubernetesCommandLineCodeExecutor(options),
    connect: connectingTo(
      provider,
      leftPlace,
      (options, left) => new KubernetesCommandLineCodeExecutor(options, left),
      ({ network = "open" }) => network !== "open",
    ),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: KubernetesExecutorOptions;
  readonly #options: KubernetesExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  #connector: KubernetesConnector | undefined;

  /** The session to connect to, until that has been done. */
  #left: LeftPod | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: KubernetesExecutorOptions = {}, left?: LeftPod) {
    const checked = checkOptions(kubernetesExecutorOptions, options, "KubernetesCommandLineCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir", "kubeconfig"]);
    this.#table = languageTable(checked.languages);
    const languages = Object.keys(this.#table);
    const reach = networkReach(checked.network ?? "open");
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
  }

  /** The pod that blocks run in; `undefined` while the executor is not started. A lost pod is replaced by a new one. */
  get podName(): string | undefined {
    return this.#connector?.podName;
  }

  dumpComponent(): ComponentModel {
    return KubernetesCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected override dumpForHandle(): ComponentModel {
    return KubernetesCommandLineCodeExecutor.component.dump(withoutCallbacks({ ...this.#options }));
  }

  protected async openBackend(): Promise<Backend> {
    const left = this.#left;
    this.#left = undefined;
    this.#connector = new KubernetesConnector({ ...this.request(this.#options, this.#table), left });
    const backend = this.#connector.backend();
    const { stateful, outputDir } = this.#options;
    return stateful === true ? this.makeStateful(backend, { outputDir, bound: undefined }) : backend;
  }
}
