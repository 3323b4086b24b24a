import {
  defineComponent,
  type Component,
  type ComponentModel,
  type ExecutorCapabilities,
  InvalidInputError,
  type SessionHandle,
} from "@fenced/core";
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
import { E2BConnector } from "./e2b-connector.ts";
import { e2bExecutorOptions, type E2BExecutorOptions } from "./e2b-executor-options.ts";
import { leftPlace, type LeftSandbox } from "./left-session.ts";
import { serviceAddress } from "./service/service-address.ts";

const provider = "@fenced/e2b:E2BCodeExecutor";

/**
 * Runs each block in a new process in a sandbox of E2B, or of any other service that speaks its protocol, such as the
 * server of this package. The sandbox ends with the executor; if this program is killed, the service ends it after at
 * most two minutes, or after a little more than `keepAliveMs`.
 *
 * @example
 * await using executor = new E2BCodeExecutor({ template: "base" }); // The key is in the variable E2B_API_KEY.
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class E2BCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<E2BCodeExecutor> = defineComponent({
    provider,
    componentType: "code_executor",
    schema: e2bExecutorOptions,
    secrets: ["apiKey"],
    load: (options) => new E2BCodeExecutor(options),
    connect: connectingTo(
      provider,
      leftPlace,
      (options, left) => new E2BCodeExecutor(options, left),
      ({ network = "open" }) => network !== "open",
    ),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: E2BExecutorOptions;
  readonly #options: E2BExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  #connector: E2BConnector | undefined;

  /** The session to connect to, until that has been done. */
  #left: LeftSandbox | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(options: E2BExecutorOptions = {}, left?: LeftSandbox) {
    const checked = checkOptions(e2bExecutorOptions, options, "E2BCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
    this.#given = checked;
    this.#options = absolutePaths(checked, ["outputDir"]);
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
      isolation: "remote",
    };
  }

  /** The id of the sandbox that blocks run in; `undefined` while the executor is not started. A lost one is replaced by a new one. */
  get sandboxId(): string | undefined {
    return this.#connector?.sandboxId;
  }

  /**
   * Lets go of the session, as `detach` does, and pauses its sandbox, with files, programs and variables, for as long as
   * the service keeps it. `connectExecutor` resumes it.
   *
   * @returns the session's handle.
   * @throws InvalidInputError without `keepAliveMs`, or if the executor is not started; BackendUnavailableError if the
   * service does not pause the sandbox or would keep only its files, as the server of this package; the session then goes
   * on as after `detach`.
   */
  async pause(): Promise<SessionHandle> {
    const [handle, id, connector] = [this.handle, this.sandboxId, this.#connector];
    if (handle === undefined || id === undefined || !connector) {
      throw new InvalidInputError("There is no session that could be paused and connected to again", {
        remedy: "Set `keepAliveMs`, and start the executor first.",
      });
    }
    await this.detach();
    await connector.pause(id);
    return handle;
  }

  dumpComponent(): ComponentModel {
    return E2BCodeExecutor.component.dump({ ...this.#given });
  }

  /** With the addresses, which another program's environment may not have, and without the key. */
  protected override dumpForHandle(): ComponentModel {
    const { apiKey: _, ...settings } = this.#options;
    return E2BCodeExecutor.component.dump(withoutCallbacks({ ...settings, ...serviceAddress(settings) }));
  }

  protected async openBackend(): Promise<Backend> {
    const left = this.#left;
    this.#left = undefined;
    this.#connector = new E2BConnector({ ...this.request(this.#options, this.#table), left });
    const backend = this.#connector.backend();
    const { stateful, outputDir } = this.#options;
    return stateful === true ? this.makeStateful(backend, { outputDir, bound: undefined }) : backend;
  }
}
