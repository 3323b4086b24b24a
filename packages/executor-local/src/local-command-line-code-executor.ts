import {
  BackendUnavailableError,
  type Component,
  type ComponentModel,
  defineComponent,
  type ExecutorCapabilities,
} from "@fenced/core";
import { networkReach } from "@fenced/core/network";
import { checkOptions } from "@fenced/core/options";
import {
  absolutePaths,
  type Backend,
  commandLineCapabilities,
  ForkableCodeExecutor,
  hostFunctionLanguages,
  type LanguageCommand,
  languageTable,
  withoutCallbacks,
} from "@fenced/executor-kit";
import { connectingTo, supervisedUsage } from "@fenced/executor-kit/supervisor";
import { HostConnector } from "./host-connector.ts";
import { KeptHostConnector } from "./kept/kept-host-connector.ts";
import { KeptSandboxConnector } from "./kept/kept-sandbox-connector.ts";
import { type LeftOnHost, leftPlace } from "./kept/left-session.ts";
import { findProgram } from "./languages/find-languages.ts";
import { localExecutorOptions, type LocalExecutorOptions } from "./local-executor-options.ts";
import { ProcessPlace, type ProcessSettings } from "./process-place.ts";
import { SandboxConnector } from "./sandbox/sandbox-connector.ts";
import { unsupportedSystem } from "./sandbox/sandbox-problems.ts";
import { findVirtualEnv, type VirtualEnv } from "./virtual-env.ts";

const provider = "@fenced/executor-local:LocalCommandLineCodeExecutor";

/**
 * Runs each block in a new process on this host, in the work directory, as the user who runs this program. With
 * `isolation: "os-sandbox"`, the operating system confines the blocks. Without it, **nothing protects the host from the
 * code**: use it only for code that you would run yourself, or inside a container or virtual machine. The first
 * executor created without isolation emits a process warning (`FENCED_LOCAL`).
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor({ workDir: "coding" });
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 * console.log(result.output); // "42\n"
 */
export class LocalCommandLineCodeExecutor extends ForkableCodeExecutor {
  static readonly component: Component<LocalCommandLineCodeExecutor> = defineComponent({
    provider,
    componentType: "code_executor",
    schema: localExecutorOptions,
    load: (options) => new LocalCommandLineCodeExecutor(options),
    connect: connectingTo(
      provider,
      leftPlace,
      (options, left) => new LocalCommandLineCodeExecutor(options, left),
      ({ isolation, network }) => isolation === "os-sandbox" && network !== "open",
    ),
  });
  protected readonly offered: ExecutorCapabilities;
  /** As they were given, for `dumpComponent`. */
  readonly #given: LocalExecutorOptions;
  readonly #options: LocalExecutorOptions;
  readonly #table: Readonly<Record<string, LanguageCommand>>;
  readonly #virtualEnv: VirtualEnv | undefined;

  /** The session to connect to, until that has been done. */
  #left: LeftOnHost | undefined;

  /**
   * @param left - a session to connect to; set by `connectExecutor`. Default: a new one.
   * @throws InvalidInputError if an option is unknown or wrong, or `virtualEnv` does not exist.
   */
  constructor(options: LocalExecutorOptions = {}, left?: LeftOnHost) {
    const checked = checkOptions(localExecutorOptions, options, "LocalCommandLineCodeExecutor");
    super(checked, undefined, left?.id);
    this.#left = left;
    this.#given = checked;
    this.#options = absolutePaths(checked, ["workDir", "outputDir", "readable", "writable"]);
    this.#table = languageTable(checked.languages);
    const languages = Object.keys(this.#table);
    const seatbelt = checked.isolation === "os-sandbox" && process.platform === "darwin";
    const reach = networkReach(checked.network ?? (checked.isolation === "os-sandbox" ? "none" : "open"));
    this.offered = {
      ...commandLineCapabilities(languages),
      ...(checked.stateful === true && { stateful: true, displays: true }),
      hostFunctions: seatbelt ? [] : hostFunctionLanguages(languages),
      processes: process.platform !== "win32",
      ...(runsSupervised(checked) && { terminals: true }),
      addresses: !seatbelt && process.platform !== "win32",
      ...((checked.keepAliveMs ?? 0) > 0 && { keepAlive: true }),
      ...reach,
      ...(runsSupervised(checked) && supervisedUsage({ ...reach, stateful: checked.stateful === true })),
      isolation: checked.isolation ?? "none",
      kernel: "shared",
    };
    this.#virtualEnv = checked.virtualEnv === undefined ? undefined : findVirtualEnv(checked.virtualEnv);
    if (this.offered.isolation === "none") warnUnsandboxed();
  }

  dumpComponent(): ComponentModel {
    return LocalCommandLineCodeExecutor.component.dump({ ...this.#given });
  }

  protected override dumpForHandle(): ComponentModel {
    return LocalCommandLineCodeExecutor.component.dump(withoutCallbacks({ ...this.#options }));
  }

  protected openBackend(): Backend | Promise<Backend> {
    const { inheritEnv = [], cleanupTempFiles = true } = this.#options;
    const settings = {
      ...this.request(this.#options, this.#table),
      workDirectory: this.#options.workDir,
      virtualEnv: this.#virtualEnv,
      env: this.env,
      inheritEnv,
      cleanupTempFiles,
    };
    return this.offered.isolation === "none" ? this.#openHost(settings) : this.#openSandbox(settings);
  }

  async #openHost(settings: ProcessSettings): Promise<Backend> {
    const { warm = false, stateful = false, keepAliveMs = 0 } = this.#options;
    if (warm === false && !stateful) return processes(settings);
    if (process.platform !== "linux") throw unsupervisedSystem(stateful ? "stateful" : "warm");
    if (keepAliveMs > 0) {
      const kept = { ...settings, warm, stateful, keepAliveMs, left: this.#takeLeft() };
      return this.#supervised(await KeptHostConnector.open(kept));
    }
    // Without Python, no interpreter can be kept waiting, and blocks of other languages do not need one.
    if (!stateful && !hasPython()) return processes(settings);
    return this.#supervised(await HostConnector.open({ ...settings, warm, stateful }));
  }

  async #openSandbox(settings: ProcessSettings): Promise<Backend> {
    const { readable = [], writable = [], network = "none", memoryBytes, pidsLimit, warm } = this.#options;
    const { stateful = false, keepAliveMs = 0 } = this.#options;
    const sandbox = { readable, writable, network, memoryBytes, pidsLimit, warm };
    if (stateful && process.platform !== "linux") throw unsupervisedSystem("stateful");
    if (keepAliveMs > 0 && process.platform !== "linux") throw unsupervisedSystem("keepAliveMs");
    if (process.platform === "darwin") return processes({ ...settings, seatbelt: sandbox });
    if (process.platform !== "linux") throw unsupportedSystem();
    if (keepAliveMs > 0) {
      const kept = { ...settings, ...sandbox, stateful, keepAliveMs, left: this.#takeLeft() };
      return this.#supervised(await KeptSandboxConnector.open(kept));
    }
    return this.#supervised(await SandboxConnector.open({ ...settings, ...sandbox, stateful }));
  }

  #takeLeft(): LeftOnHost | undefined {
    const left = this.#left;
    this.#left = undefined;
    return left;
  }

  #supervised(
    connector: HostConnector | KeptHostConnector | KeptSandboxConnector | SandboxConnector,
  ): Backend | Promise<Backend> {
    const { stateful = false, outputDir, writable = [] } = this.#options;
    const { workDirectory } = connector;
    const bound = [...(workDirectory === undefined ? [] : [workDirectory]), ...writable];
    return stateful ? this.makeStateful(connector.backend(), { outputDir, bound }) : connector.backend();
  }
}

/** Whether a supervisor runs the programs, at least where there is Python. */
function runsSupervised({ isolation, warm = false, stateful = false }: LocalExecutorOptions): boolean {
  return process.platform === "linux" && (isolation === "os-sandbox" || warm !== false || stateful);
}

/** Opens the place where each block is a process of this program. */
function processes(settings: ProcessSettings): Backend {
  return { open: () => ProcessPlace.open(settings), close: () => Promise.resolve() };
}

function hasPython(): boolean {
  return ["python3", "python"].some((name) => findProgram(name, process.env["PATH"] ?? "") !== undefined);
}

function unsupervisedSystem(option: "warm" | "stateful" | "keepAliveMs"): BackendUnavailableError {
  return new BackendUnavailableError(`\`${option}\` needs Linux; this is ${process.platform}`, {
    remedy:
      option === "stateful"
        ? "Leave it out, or use @fenced/executor-docker, @fenced/executor-jupyter or @fenced/executor-wasm."
        : "Leave it out, or use a container, with @fenced/executor-docker.",
  });
}

let warned = false;

/** Warns once per process that local execution is not a sandbox. */
function warnUnsandboxed(): void {
  if (warned) return;
  warned = true;
  process.emitWarning("LocalCommandLineCodeExecutor runs code on this host, unsandboxed, as the current user.", {
    code: "FENCED_LOCAL",
    detail: "Use an executor with isolation, such as @fenced/executor-docker, for code that you do not trust.",
  });
}
