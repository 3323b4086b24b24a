import { optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
} from "@fenced/executor-kit";
import { z } from "zod";
import { unshareable } from "./sandbox/shared-paths.ts";

/** Settings of `LocalCommandLineCodeExecutor`; none is required. */
export interface LocalExecutorOptions extends BaseExecutorOptions, CommandLineExecutorOptions {
  /** The blocks' working directory; made if missing, never deleted. Default: a temporary one, deleted by `stop()`. */
  readonly workDir?: string;
  /** A virtual environment whose Python runs the blocks, made by `venv` or `uv`. Default: the Python on `PATH`. */
  readonly virtualEnv?: string;
  /**
   * Names of this process's environment variables that blocks may see, besides what every program needs to run
   * (`PATH`, `HOME`, `LANG`, ...). Default: none, so that API keys stay out of code that a model wrote.
   */
  readonly inheritEnv?: readonly string[];
  /**
   * What stands between the code and this machine. `"none"`: nothing. `"os-sandbox"`: on Linux a sandbox made by bubblewrap, on
   * macOS by `sandbox-exec`; where it cannot be made, starting fails. Default: `"none"`.
   */
  readonly isolation?: "none" | "os-sandbox";
  /**
   * The network of a sandbox. `"none"`: only its own loopback. `"open"`: all that this machine reaches, with the services that
   * listen on its loopback, and its abstract sockets. Default: `"none"`. Only with `isolation: "os-sandbox"`.
   */
  readonly network?: "none" | "open";
  /** Files and directories of this machine that a sandbox shows, read-only. Default: none. Only with `isolation: "os-sandbox"`. */
  readonly readable?: readonly string[];
  /** Files and directories that code in a sandbox may change, besides `workDir`. Default: none. Only with `isolation: "os-sandbox"`. */
  readonly writable?: readonly string[];
  /**
   * Bytes of memory of a sandbox, its `/tmp` included, from 32 MiB; of each process where this program may not make control groups.
   * Default: 1 GiB. Only with `isolation: "os-sandbox"`, on Linux.
   */
  readonly memoryBytes?: number;
  /**
   * Processes and threads of a sandbox at a time, from 16. Default: 512, or no limit where this program is root and may not make
   * control groups; a limit that is given and cannot be held is an error. Only with `isolation: "os-sandbox"`, on Linux.
   */
  readonly pidsLimit?: number;
}

/** Options that mean something in a sandbox only. */
const sandboxOnly = ["network", "readable", "writable", "memoryBytes", "pidsLimit"] as const;
const leastMemory = 33_554_432;
const leastPids = 16;

const sharedPaths: z.ZodType<readonly string[]> = z.array(z.string().min(1)).check(({ value, issues }) => {
  for (const [index, each] of value.entries()) {
    const message = unshareable(each);
    if (message !== undefined) issues.push({ code: "custom", path: [index], input: each, message });
  }
});

/** Checks the options, and the executor's config in a component model. */
export const localExecutorOptions: z.ZodType<LocalExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  workDir: z.string().min(1).exactOptional(),
  virtualEnv: z.string().min(1).exactOptional(),
  inheritEnv: z.array(z.string()).exactOptional(),
  isolation: z.enum(["none", "os-sandbox"]).exactOptional(),
  network: z.enum(["none", "open"], 'must be "none" or "open": a sandbox allows no hosts one by one').exactOptional(),
  readable: sharedPaths.exactOptional(),
  writable: sharedPaths.exactOptional(),
  memoryBytes: wholeNumberOption({ from: leastMemory, unit: "bytes" }).exactOptional(),
  pidsLimit: wholeNumberOption({ from: leastPids }).exactOptional(),
} satisfies OptionSchemas<LocalExecutorOptions>).check(({ value, issues }) => {
  const refuse = (name: string, input: unknown, message: string): void => {
    issues.push({ code: "custom", path: [name], input, message });
  };
  if (value.isolation !== "os-sandbox") {
    for (const name of sandboxOnly) {
      if (value[name] !== undefined) {
        refuse(name, value[name], 'needs `isolation: "os-sandbox"`: without a sandbox nothing is held back');
      }
    }
    return;
  }
  const reason = value.workDir === undefined ? undefined : unshareable(value.workDir);
  if (reason !== undefined) refuse("workDir", value.workDir, reason);
});
