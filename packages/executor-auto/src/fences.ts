import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import type { FenceName } from "./fenced-executor.ts";
import { importExecutor } from "./import-executor.ts";
import type { OpenExecutorOptions } from "./open-executor-options.ts";

/** How to create one kind of fence. */
export interface Fence {
  readonly name: FenceName;
  /** Its name in a sentence. */
  readonly title: string;
  /** Where code runs behind it, as text after "The code runs in". */
  readonly place: string;
  /** What to do about a language that it does not support. */
  readonly newLanguage: string;
  /** The package of its executor. */
  readonly packageName: string;
  /** Default time limit for its start in milliseconds. */
  readonly startTimeoutMs: number;
  /**
   * Creates the executor without starting anything.
   *
   * @throws BackendUnavailableError if its package is not installed, or if it cannot do what the options ask for.
   */
  readonly make: (options: OpenExecutorOptions) => Promise<CodeExecutor>;
}

const container: Fence = {
  name: "docker",
  title: "Docker",
  place: "a Docker or Podman container",
  newLanguage: "Choose an image that has it (`image`), or use another fence.",
  packageName: "@fenced/executor-docker",
  startTimeoutMs: 30_000,
  async make(options) {
    const { network = "none", image, pull, docker, onPullProgress } = options;
    const { DockerCommandLineCodeExecutor } = await importExecutor(
      this.packageName,
      () => import("@fenced/executor-docker"),
    );
    return new DockerCommandLineCodeExecutor({
      ...baseOf(options),
      ...placeOf(options),
      network,
      runtime: "auto",
      ...(image === undefined ? {} : { image }),
      ...(pull === undefined ? {} : { pull }),
      ...(docker === undefined ? {} : { docker }),
      ...(onPullProgress === undefined ? {} : { onPullProgress }),
    });
  },
};

const osSandbox: Fence = {
  name: "os-sandbox",
  title: "the OS sandbox",
  place: "an OS sandbox",
  newLanguage: "Install it, or use another fence.",
  packageName: "@fenced/executor-local",
  startTimeoutMs: 30_000,
  async make(options) {
    const { LocalCommandLineCodeExecutor } = await importExecutor(
      this.packageName,
      () => import("@fenced/executor-local"),
    );
    return new LocalCommandLineCodeExecutor({
      ...baseOf(options),
      ...placeOf(options),
      isolation: "os-sandbox",
      network: options.network ?? "none",
    });
  },
};

/** WebAssembly has 32-bit addresses. */
const mostMemory = 2 ** 32;

const wasm: Fence = {
  name: "wasm",
  title: "WebAssembly",
  place: "an interpreter in WebAssembly",
  newLanguage: "Use another fence.",
  packageName: "@fenced/executor-wasm",
  // Nothing in it can hang like a daemon, but its first start loads Python, which takes a busy machine a minute. The executor gives up
  // by itself before that.
  startTimeoutMs: 200_000,
  async make(options) {
    const { network = "none", memoryBytes = 0, workDir } = options;
    if (network !== "none") throw cannot("WebAssembly has no network", "Leave `network` out");
    if (workDir !== undefined) throw cannot("WebAssembly keeps files in memory", "Leave `workDir` out");
    if (memoryBytes > mostMemory) throw cannot("WebAssembly has at most 4 GiB of memory", "Ask for less `memoryBytes`");
    const { WasmCodeExecutor } = await importExecutor(this.packageName, () => import("@fenced/executor-wasm"));
    return new WasmCodeExecutor({ ...baseOf(options), ...(memoryBytes === 0 ? {} : { memoryBytes }) });
  },
};

/** All fences, the strongest first. */
export const fences: readonly Fence[] = [container, osSandbox, wasm];

/** The options that every executor has. */
function baseOf(options: OpenExecutorOptions): BaseExecutorOptions {
  const given = Object.entries(options).filter(([name]) => Object.hasOwn(baseExecutorConfig, name));
  return Object.fromEntries(given);
}

/** The options of executors with a work directory. */
function placeOf({ memoryBytes, workDir }: OpenExecutorOptions): Pick<OpenExecutorOptions, "memoryBytes" | "workDir"> {
  return { ...(memoryBytes === undefined ? {} : { memoryBytes }), ...(workDir === undefined ? {} : { workDir }) };
}

function cannot(problem: string, remedy: string): BackendUnavailableError {
  return new BackendUnavailableError(problem, { remedy: `${remedy}, or use another fence.` });
}
