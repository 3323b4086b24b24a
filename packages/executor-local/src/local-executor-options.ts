import type { NetworkPolicy } from "@fenced/core";
import { networkPolicyOption, optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";
import { unshareable } from "./sandbox/shared-paths.ts";

/** Options of `LocalCommandLineCodeExecutor`; all are optional. */
export interface LocalExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, StatefulExecutorOptions, KeepAliveOptions {
  /**
   * The blocks' working directory; created if missing, never deleted. Default: a temporary one that `stop()` deletes.
   */
  readonly workDir?: string | undefined;
  /** A virtual environment, made by `venv` or `uv`, whose Python runs the blocks. Default: the Python on `PATH`. */
  readonly virtualEnv?: string | undefined;
  /**
   * Names of this process's environment variables that blocks may see, besides those that every program needs to run
   * (`PATH`, `HOME`, `LANG`, ...). Default: none, so that model-written code does not see API keys.
   */
  readonly inheritEnv?: readonly string[] | undefined;
  /**
   * How to isolate the code from this machine. `"none"`: not at all. `"os-sandbox"`: in a sandbox made by bubblewrap on
   * Linux and by `sandbox-exec` on macOS; if the sandbox cannot be created, the start fails. Default: `"none"`.
   */
  readonly isolation?: "none" | "os-sandbox" | undefined;
  /**
   * What code in the sandbox may connect to. `"none"`: only the sandbox's own loopback. `{ allow: ["pypi.org:443"] }`:
   * only these hosts, through a proxy in this process; not on macOS. `"open"`: everything this machine can reach,
   * including services on its loopback and its abstract sockets. Default: `"none"`. Only with `isolation:
   * "os-sandbox"`.
   */
  readonly network?: NetworkPolicy | undefined;
  /**
   * Files and directories of this machine that code in the sandbox can read. Sockets and named pipes that are in them at
   * the start are hidden, since they lead to programs outside. Looking for them takes time: 1 s for 200,000 entries, and
   * further ones are not looked at. Default: none. Only with `isolation: "os-sandbox"`.
   */
  readonly readable?: readonly string[] | undefined;
  /**
   * Files and directories that code in the sandbox can change, besides `workDir`. Sockets that are in them at the start
   * are hidden, but a socket that is named itself can be connected to. Default: none. Only with
   * `isolation: "os-sandbox"`.
   */
  readonly writable?: readonly string[] | undefined;
  /**
   * Memory limit of the sandbox in bytes, including its `/tmp`; at least 32 MiB. If this program cannot create control
   * groups, it applies to the data of each process instead, and not to what processes share (`memfd_create`, shared
   * mappings); if you set it, a process warning says so (`FENCED_MEMORY`). Default: 1 GiB. Only with `isolation: "os-sandbox"`, on Linux.
   */
  readonly memoryBytes?: number | undefined;
  /**
   * Maximum number of processes and threads in the sandbox; at least 16. Default: 512, or no limit if this program
   * cannot create control groups and is root or runs on Linux before 5.14. If you set a limit that cannot be enforced, the
   * start fails. Only with `isolation: "os-sandbox"`, on Linux.
   */
  readonly pidsLimit?: number | undefined;
  /**
   * Keep a Python interpreter waiting, with modules already imported, and fork Python blocks from it. Also keep a
   * JavaScript interpreter waiting, if Node is installed, which becomes the next block. This saves the time to start
   * them and to import large modules such as pandas. Needs Linux, or the start fails. Without `python3` (3.8 or later),
   * blocks start as they do without `warm`. Default: false.
   */
  readonly warm?: false | WarmOptions | undefined;
  /**
   * Run Python blocks in one interpreter, so that variables persist between blocks; `fork()` then creates a second
   * executor with the same variables. Needs Linux and Python 3.8 or later, or the start fails. Default: false.
   */
  readonly stateful?: boolean | undefined;
  /**
   * How long a session lives while no program of this machine is connected to it, in milliseconds; `connectExecutor`
   * connects to it with `executor.handle`. If no program does in time, it ends by itself. `stop()` and disposal still end
   * it at once. Needs Linux, and `warm`, `stateful` or a sandbox. Default: 0, it ends with its program.
   */
  readonly keepAliveMs?: number | undefined;
}

/** Options that apply only to the sandbox. */
const sandboxOnly = ["network", "readable", "writable", "memoryBytes", "pidsLimit"] as const;
const leastMemory = 33_554_432;
const leastPids = 16;

const sharedPaths: z.ZodType<readonly string[]> = z.array(z.string().min(1)).check(({ value, issues }) => {
  for (const [index, each] of value.entries()) {
    const message = unshareable(each);
    if (message !== undefined) issues.push({ code: "custom", path: [index], input: each, message });
  }
});

/** Validates the options, and the executor's config in a component model. */
export const localExecutorOptions: z.ZodType<LocalExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  workDir: z.string().min(1).exactOptional(),
  virtualEnv: z.string().min(1).exactOptional(),
  inheritEnv: z.array(z.string()).exactOptional(),
  isolation: z.enum(["none", "os-sandbox"]).exactOptional(),
  network: networkPolicyOption().exactOptional(),
  readable: sharedPaths.exactOptional(),
  writable: sharedPaths.exactOptional(),
  memoryBytes: wholeNumberOption({ from: leastMemory, unit: "bytes" }).exactOptional(),
  pidsLimit: wholeNumberOption({ from: leastPids }).exactOptional(),
  warm: warmOption.exactOptional(),
  ...keepAliveOptions,
  ...statefulOptions,
} satisfies OptionSchemas<LocalExecutorOptions>).check(checkStateful, ({ value, issues }) => {
  const refuse = (name: string, input: unknown, message: string): void => {
    issues.push({ code: "custom", path: [name], input, message });
  };
  const { keepAliveMs = 0, warm = false, stateful = false } = value;
  if (keepAliveMs > 0 && value.isolation !== "os-sandbox" && warm === false && !stateful) {
    const what = '`warm: {}`, `stateful: true` or `isolation: "os-sandbox"`';
    refuse("keepAliveMs", keepAliveMs, `needs ${what}: otherwise blocks are processes of this program`);
  }
  if (value.isolation !== "os-sandbox") {
    for (const name of sandboxOnly) {
      if (value[name] !== undefined) {
        refuse(name, value[name], 'needs `isolation: "os-sandbox"`: without a sandbox it cannot be enforced');
      }
    }
    return;
  }
  const reason = value.workDir === undefined ? undefined : unshareable(value.workDir);
  if (reason !== undefined) refuse("workDir", value.workDir, reason);
});
