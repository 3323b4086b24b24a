import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import type { FenceName } from "./fenced-executor.ts";
import { importExecutor } from "./import-executor.ts";
import type { DownloadProgress, OpenExecutorOptions } from "./open-executor-options.ts";

/** How one kind of fence is made. */
export interface Fence {
  readonly name: FenceName;
  /** What it is called in a sentence. */
  readonly title: string;
  /** Where code runs that is behind it, after "The code runs in". */
  readonly place: string;
  /** The package of its executor. */
  readonly packageName: string;
  /**
   * Makes the executor, and starts nothing.
   *
   * @throws BackendUnavailableError if its package is not installed, or it cannot do what is asked for.
   */
  readonly make: (
    options: OpenExecutorOptions,
    onPullProgress: (progress: DownloadProgress) => void,
  ) => Promise<CodeExecutor>;
}

const container: Fence = {
  name: "docker",
  title: "Docker",
  place: "a container of Docker or Podman",
  packageName: "@fenced/executor-docker",
  async make(options, onPullProgress) {
    const { network = "none", image, pull, docker } = options;
    const { DockerCommandLineCodeExecutor } = await importExecutor(
      this.packageName,
      () => import("@fenced/executor-docker"),
    );
    return new DockerCommandLineCodeExecutor({
      ...baseOf(options),
      ...placeOf(options),
      onPullProgress,
      network,
      ...(image === undefined ? {} : { image }),
      ...(pull === undefined ? {} : { pull }),
      ...(docker === undefined ? {} : { docker }),
    });
  },
};

const osSandbox: Fence = {
  name: "os-sandbox",
  title: "the OS sandbox",
  place: "a sandbox of the operating system",
  packageName: "@fenced/executor-local",
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

/** The addresses of WebAssembly have 32 bits. */
const mostMemory = 2 ** 32;

const wasm: Fence = {
  name: "wasm",
  title: "WebAssembly",
  place: "an interpreter in WebAssembly",
  packageName: "@fenced/executor-wasm",
  async make(options) {
    const { network, memoryBytes = 0, workDir } = options;
    if (network === "open") throw cannot("WebAssembly has no network", "Leave `network` out");
    if (workDir !== undefined) throw cannot("WebAssembly keeps files in memory", "Leave `workDir` out");
    if (memoryBytes > mostMemory) throw cannot("WebAssembly has at most 4 GiB of memory", "Ask for less `memoryBytes`");
    const { WasmCodeExecutor } = await importExecutor(this.packageName, () => import("@fenced/executor-wasm"));
    return new WasmCodeExecutor({ ...baseOf(options), ...(memoryBytes === 0 ? {} : { memoryBytes }) });
  },
};

/** All fences, the strongest first. */
export const fences: readonly Fence[] = [container, osSandbox, wasm];

/** What every executor can be told. */
function baseOf(options: OpenExecutorOptions): BaseExecutorOptions {
  const given = Object.entries(options).filter(([name]) => Object.hasOwn(baseExecutorConfig, name));
  return Object.fromEntries(given);
}

/** What can be said of a place that has a directory. */
function placeOf({ memoryBytes, workDir }: OpenExecutorOptions): Pick<OpenExecutorOptions, "memoryBytes" | "workDir"> {
  return { ...(memoryBytes === undefined ? {} : { memoryBytes }), ...(workDir === undefined ? {} : { workDir }) };
}

function cannot(problem: string, remedy: string): BackendUnavailableError {
  return new BackendUnavailableError(problem, { remedy: `${remedy}, or use another fence.` });
}
