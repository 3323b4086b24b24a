import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import {
  checkOptions,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { hostEnvironment, killProcesses, Leash } from "@fenced/executor-kit";
import { z } from "zod";
import { findJupyterPython } from "./find-jupyter-python.ts";
import { removeHostDirectory } from "./host-directory.ts";
import type { ServerLease } from "./jupyter-server.ts";
import { LauncherProcess } from "./launcher-process.ts";
import { ManagedServer } from "./managed-server.ts";
import { serverAddress, type ServerAddress } from "./server-settings.ts";

/** Settings of `LocalJupyterServer`; none is required. */
export interface LocalJupyterServerOptions {
  /**
   * A Python with jupyter_server (1.x or 2.x) and ipykernel. Default: that of the active virtual environment, or the
   * first on the PATH that has both.
   */
  readonly python?: string | undefined;
  /** Milliseconds that the server may take to start. Default: 60,000. */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Names of this process's environment variables that the kernels may see, besides what every program needs to run
   * (`PATH`, `HOME`, `LANG`, ...). Default: none, so that API keys stay out of code that a model wrote.
   */
  readonly inheritEnv?: readonly string[] | undefined;
  /**
   * Memory limit of each kernel in bytes, at least 128 MiB; each process that a kernel starts may use as much again.
   * Beyond that, code gets a `MemoryError`. This is the system's limit on data (`RLIMIT_DATA`), which code that runs
   * as root can raise. Default: no limit.
   */
  readonly memoryBytes?: number | undefined;
}

/** A kernel needs this much before it runs any code. */
const leastMemory = 134_217_728;

/** The schemas of the options. */
export const localServerOptions: OptionSchemas<LocalJupyterServerOptions> = {
  python: z.string().min(1).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  inheritEnv: z.array(z.string()).exactOptional(),
  memoryBytes: wholeNumberOption({ from: leastMemory, unit: "bytes" }).exactOptional(),
};

/** The directory of a server, which it leaves to the next one if it dies. */
interface ServerDirectory {
  readonly scratch: string;
  /** Removes it, and ends the processes with the mark, if this program dies. */
  readonly leash: Leash;
  readonly mark: { readonly name: string; readonly value: string };
}

/** A running server. */
interface RunningServer extends ServerDirectory {
  readonly address: ServerAddress;
  readonly launcher: LauncherProcess;
}

/**
 * A Jupyter server on this host, for any number of executors. It listens on a free port of 127.0.0.1, with a random
 * token that appears in no process list, file, log or error. **Its kernels run as the user who runs this program**;
 * nothing separates the code from the host.
 *
 * It starts with the first executor that needs it and stops with the last one; if you call its own `start()`, it runs
 * until `stop()`. If this program is killed, the server and its kernels end too.
 *
 * @example
 * await using server = new LocalJupyterServer();
 * await using executor = new JupyterCodeExecutor({ server });
 */
export class LocalJupyterServer extends ManagedServer<RunningServer> {
  readonly isolation = "none" as const;
  readonly network = "open" as const;
  readonly #options: LocalJupyterServerOptions;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: LocalJupyterServerOptions = {}) {
    super();
    this.#options = checkOptions(optionsSchema(localServerOptions), options, "LocalJupyterServer");
  }

  /** This server as it appears in a component model. */
  toJSON(): object {
    return { type: "local", ...this.#options };
  }

  protected async open(left: RunningServer | undefined): Promise<RunningServer> {
    const directory = left ?? (await newDirectory());
    const { scratch, leash, mark } = directory;
    try {
      const token = randomBytes(32).toString("hex");
      const env = await this.#environment(scratch);
      const python = await findJupyterPython(this.#options.python, env);
      const launcher = await LauncherProcess.start({
        python,
        token,
        cwd: scratch,
        env: { ...env, [mark.name]: mark.value, ...searchPath(python, env) },
        startTimeoutMs: this.#options.startTimeoutMs ?? 60_000,
        memoryBytes: this.#options.memoryBytes,
      });
      const address = serverAddress({ baseUrl: `http://127.0.0.1:${launcher.port}/`, token });
      return { address, scratch, launcher, leash, mark };
    } catch (error) {
      await killProcesses({ mark });
      if (!left) await this.discard(directory);
      if (BackendUnavailableError.isInstance(error)) throw error;
      throw new BackendUnavailableError(`The Jupyter server could not be started: ${String(error)}`, {
        remedy: "Make sure that the temporary directory is writable, and that the Python that `python` names runs.",
        cause: error,
      });
    }
  }

  protected async close({ launcher, mark }: RunningServer): Promise<void> {
    await killProcesses({ mark, ...(launcher.pid === undefined ? {} : { root: launcher.pid }) });
    await launcher.leave();
  }

  protected override async discard({ scratch, leash }: ServerDirectory): Promise<void> {
    await removeHostDirectory(scratch);
    await leash.release();
  }

  protected whyEnded({ launcher }: RunningServer): string | undefined {
    return launcher.ended;
  }

  protected lease({ address, scratch }: RunningServer): Pick<ServerLease, "address" | "host"> {
    return { address, host: { scratch } };
  }

  /** Kernels get the variables that programs need, and do not touch the user's own Jupyter settings and history. */
  async #environment(scratch: string): Promise<Record<string, string>> {
    const own = {
      JUPYTER_RUNTIME_DIR: path.join(scratch, "runtime"),
      JUPYTER_CONFIG_DIR: path.join(scratch, "config"),
      IPYTHONDIR: path.join(scratch, "ipython"),
    };
    for (const directory of Object.values(own)) {
      // An earlier server may have left them, and code may have changed them.
      await removeHostDirectory(directory);
      await mkdir(directory, { mode: 0o700 });
    }
    const profile = path.join(own.IPYTHONDIR, "profile_default");
    await mkdir(profile);
    // Each kernel keeps its history in memory: all kernels of the server would share a history file.
    await writeFile(
      path.join(profile, "ipython_kernel_config.py"),
      'get_config().HistoryManager.hist_file = ":memory:"\n',
    );
    return { ...hostEnvironment(this.#options.inheritEnv ?? []), ...own, PYTHONUTF8: "1" };
  }
}

async function newDirectory(): Promise<ServerDirectory> {
  const scratch = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-jupyter-")));
  const mark = { name: "FENCED_SESSION", value: randomUUID() };
  return { scratch, mark, leash: new Leash({ mark, remove: [scratch] }) };
}

/** Lets shell blocks find the tools of the kernels' Python first, above all its `pip`. */
function searchPath(python: string, env: Readonly<Record<string, string>>): { readonly PATH: string } {
  return { PATH: [path.dirname(python), env["PATH"] ?? ""].filter((place) => place !== "").join(path.delimiter) };
}
