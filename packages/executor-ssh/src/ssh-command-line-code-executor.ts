import { defineComponent, type Component, type ComponentModel, type ExecutorCapabilities } from "@fenced/core";
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
import { leftPlace, type LeftRemote } from "./left-session.ts";
import { sshBackend } from "./ssh-connector.ts";
import { sshExecutorOptions, type SshExecutorOptions } from "./ssh-executor-options.ts";

const provider = "@fenced/executor-ssh:SshCommandLineCodeExecutor";

/**
 * Runs each block in a new process on another host, over the system's `ssh`: in the work directory there, as the user
 * that it logs in as. Everything there ends with the connection, and the connection ends with this program, even if this
 * program is killed.
 *
 * @example
 * await using executor = new SshCommandLineCodeExecutor({ host: "build.example.com", workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class SshCommandLineCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<SshCommandLineCodeExecutor> = defineComponent({
    provider,
    componentType: "code_executor",
    schema: sshExecutorOptions,
    load: (options) => new SshCommandLineCodeExecutor(options),
    connect: connectingTo(provider, leftPlace, (options, left) => new SshCommandLineCodeExecutor(options, left)),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: SshExecutorOptions;
  readonly #options: SshExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;

  /** The session to connect to, until that has been done. */
  #left: LeftRemote | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: SshExecutorOptions, left?: LeftRemote) {
    const checked = checkOptions(sshExecutorOptions, options, "SshCommandLineCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir", "identityFile", "configFile"]);
    this.#table = languageTable(checked.languages);
    this.offered = {
      ...commandLineCapabilities(Object.keys(this.#table)),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: hostFunctionLanguages(Object.keys(this.#table)),
      processes: true,
      terminals: true,
      addresses: true,
      ...((checked.keepAliveMs ?? 0) > 0 && { keepAlive: true }),
      network: "open",
      ...supervisedUsage({ stateful: checked.stateful === true }),
      isolation: "remote",
    };
  }

  dumpComponent(): ComponentModel {
    return SshCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected override dumpForHandle(): ComponentModel {
    return SshCommandLineCodeExecutor.component.dump(withoutCallbacks({ ...this.#options }));
  }

  protected async openBackend(): Promise<Backend> {
    const left = this.#left;
    this.#left = undefined;
    const backend = sshBackend({ ...this.request(this.#options, this.#table), left });
    const { stateful, outputDir } = this.#options;
    return stateful === true ? this.makeStateful(backend, { outputDir, bound: undefined }) : backend;
  }
}
