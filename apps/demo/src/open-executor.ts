import type { CodeExecutor } from "@fenced/core";
import { DemoError } from "./demo-error.ts";
import { pullProgress } from "./pull-progress.ts";

/** The values of `--executor`; the first is the default. */
export const executorNames = ["auto", "docker", "os-sandbox", "wasm", "local", "jupyter", "aca", "ssh"] as const;
export type ExecutorName = (typeof executorNames)[number];

/** A running executor, and what must end after it. */
export interface OpenExecutor extends AsyncDisposable {
  readonly executor: CodeExecutor;
  /** Where the code runs and why, if a fence was chosen. */
  readonly reason?: string;
}

interface Settings {
  readonly image?: string;
  readonly host?: string;
  /** The folder in which charts are kept. */
  readonly output: string;
}

/** Imports an executor's package, and creates the executor and what it depends on. */
type Recipe = (settings: Settings, signal: AbortSignal) => Promise<Made>;

interface Made {
  readonly executor: CodeExecutor;
  readonly server?: AsyncDisposable;
  readonly reason?: string;
}

const recipes: Readonly<Record<ExecutorName, Recipe>> = {
  auto: async (settings, signal) => openFence("auto", settings, signal),
  "os-sandbox": async (settings, signal) => openFence("os-sandbox", settings, signal),
  wasm: async (settings, signal) => openFence("wasm", settings, signal),
  async local() {
    const { LocalCommandLineCodeExecutor } = await import("@fenced/executor-local");
    return { executor: new LocalCommandLineCodeExecutor() };
  },
  async docker({ image }) {
    const { DockerCommandLineCodeExecutor } = await installed(
      "@fenced/executor-docker",
      () => import("@fenced/executor-docker"),
    );
    const onPullProgress = pullProgress(process.stderr);
    const options = { onPullProgress, ...(image === undefined ? {} : { image }) };
    return { executor: new DockerCommandLineCodeExecutor(options) };
  },
  async jupyter({ output }) {
    const { JupyterCodeExecutor, LocalJupyterServer } = await installed(
      "@fenced/executor-jupyter",
      () => import("@fenced/executor-jupyter"),
    );
    const server = new LocalJupyterServer();
    return { executor: new JupyterCodeExecutor({ server, outputDir: output }), server };
  },
  async aca() {
    const { ACADynamicSessionsCodeExecutor } = await installed(
      "@fenced/executor-aca",
      () => import("@fenced/executor-aca"),
    );
    const poolManagementEndpoint = process.env["ACA_POOL_MANAGEMENT_ENDPOINT"];
    if (poolManagementEndpoint === undefined) {
      throw new DemoError("--executor aca needs the session pool's address in ACA_POOL_MANAGEMENT_ENDPOINT.", 2);
    }
    // An emulator prints the token to use; for Azure, the default credential provides tokens.
    const token = process.env["ACA_TOKEN"] === undefined ? {} : { tokenVariable: "ACA_TOKEN" };
    return { executor: new ACADynamicSessionsCodeExecutor({ poolManagementEndpoint, ...token }) };
  },
  async ssh({ host }) {
    const { SshCommandLineCodeExecutor } = await installed(
      "@fenced/executor-ssh",
      () => import("@fenced/executor-ssh"),
    );
    if (host === undefined) throw new DemoError("--executor ssh needs a host: --host NAME, as you pass it to ssh.", 2);
    return { executor: new SshCommandLineCodeExecutor({ host }) };
  },
};

/**
 * Creates and starts an executor, if its package is installed.
 *
 * @throws `signal.reason` if that is aborted meanwhile, with nothing left running.
 */
export async function openExecutor(name: ExecutorName, settings: Settings, signal: AbortSignal): Promise<OpenExecutor> {
  const { executor, server, reason } = await recipes[name](settings, signal);
  const open: OpenExecutor = {
    executor,
    ...(reason === undefined ? {} : { reason }),
    async [Symbol.asyncDispose]() {
      try {
        await executor.stop();
      } finally {
        await server?.[Symbol.asyncDispose]();
      }
    },
  };
  const giveUp = (): void => void executor.stop().catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    signal.throwIfAborted();
    await executor.start();
    signal.throwIfAborted();
    return open;
  } catch (error) {
    await open[Symbol.asyncDispose]();
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/** Opens a fence, which shows whether this machine has it. */
async function openFence(
  fence: "auto" | "os-sandbox" | "wasm",
  { image }: Settings,
  signal: AbortSignal,
): Promise<Made> {
  const { openExecutor: open } = await import("@fenced/executor-auto");
  // Only "auto" may choose a container; other fences refuse its options.
  const onPullProgress = fence === "auto" ? { onPullProgress: pullProgress(process.stderr) } : {};
  // The first start of WebAssembly creates a snapshot, which takes a busy machine longer than the default.
  const settings = { ...onPullProgress, signal, startTimeoutMs: 120_000 };
  const executor = await open(fence, { ...settings, ...(image === undefined ? {} : { image }) });
  return { executor, reason: executor.fence.reason };
}

/** Imports an executor's package. Takes its name separately, for the message that says what to install. */
async function installed<T>(packageName: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const missing = error instanceof Error && error.message.includes(`'${packageName}'`);
    if (!missing) throw error;
    throw new DemoError(
      `${packageName} is not installed. Install it with: npx -y pnpm@10 --filter @fenced/demo add ${packageName}`,
      2,
    );
  }
}
