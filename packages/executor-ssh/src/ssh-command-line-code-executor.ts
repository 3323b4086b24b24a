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
} from "@fenced/executor-kit";
import { sshBackend } from "./ssh-connector.ts";
import { sshExecutorOptions, type SshExecutorOptions } from "./ssh-executor-options.ts";

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
    provider: "@fenced/executor-ssh:SshCommandLineCodeExecutor",
    componentType: "code_executor",
    schema: sshExecutorOptions,
    load: (options) => new SshCommandLineCodeExecutor(options),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: SshExecutorOptions;
  readonly #options: SshExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: SshExecutorOptions) {
    const checked = checkOptions(sshExecutorOptions, options, "SshCommandLineCodeExecutor");
    super(checked);
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir", "identityFile", "configFile"]);
    this.#table = languageTable(checked.languages);
    this.offered = {
      ...commandLineCapabilities(Object.keys(this.#table)),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: hostFunctionLanguages(Object.keys(this.#table)),
      processes: true,
      network: "open",
      isolation: "remote",
    };
  }

  dumpComponent(): ComponentModel {
    return SshCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected async openBackend(): Promise<Backend> {
    const backend = sshBackend(this.request(this.#options, this.#table));
    const { stateful, outputDir } = this.#options;
    return stateful === true ? this.makeStateful(backend, { outputDir, bound: undefined }) : backend;
  }
}
