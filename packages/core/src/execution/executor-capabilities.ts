import type { RunUsageFigure } from "./run-usage.ts";

/**
 * Something that `CodeExecutor.files` can do beyond reading, writing, listing and removing files. `directories`:
 * `makeDirectory` and `move`; `modes`: permissions, read and set; `links`: `linkTarget` and `followLinks: false` of `stat`;
 * `trees`: archives and checkpoints keep permissions, times, links and empty directories; `watch`: `watch`.
 */
export type FileFeature = "directories" | "modes" | "links" | "trees" | "watch";

/**
 * What an executor can do. Before `start()` this lists what it is designed for, afterwards what is actually available.
 */
export interface ExecutorCapabilities {
  /** Canonical names of the languages it runs, e.g. `["python", "bash", "sh"]`. */
  readonly languages: readonly string[];
  /** Variables survive from block to block and from call to call. */
  readonly stateful: boolean;
  /** Blocks can show rich output (plots, tables) as `Display`s. */
  readonly displays: boolean;
  /** Languages in which it accepts user functions. */
  readonly functions: readonly string[];
  /** Languages whose programs can call host functions; see `hostFunction`. */
  readonly hostFunctions: readonly string[];
  /** Blocks can read `ExecuteOptions.stdin`. */
  readonly stdin: boolean;
  /** It can start programs that run alongside blocks; see `CodeExecutor.processes`. Default: false. */
  readonly processes?: boolean;
  /** These programs can run on a terminal; see `ProcessOptions.pty`. Default: false. */
  readonly terminals?: boolean;
  /** This host reaches the ports on which they listen; see `ExecutorProcesses.address`. Default: false. */
  readonly addresses?: boolean;
  /** What `files` can do beyond reading, writing, listing and removing files. Default: nothing. */
  readonly files?: readonly FileFeature[];
  /** Its sessions outlive their programs, because the option `keepAliveMs` is set; see `CodeExecutor.handle`. Default: false. */
  readonly keepAlive?: boolean;
  /** Submitted runs go on in such a session while no program is connected; see `CodeExecutor.submit`. Default: false. */
  readonly keepsRuns?: boolean;
  /**
   * The figures of `CodeResult.usage` that it can know of its blocks, if nothing keeps it from that: as a rule, each result has
   * them. Default: none.
   */
  readonly usage?: readonly RunUsageFigure[];
  /** What blocks can connect to: nothing, whatever their place reaches, or only these hosts. Absent if not known. */
  readonly network?: "none" | "open" | readonly string[];
  /** Installed Python packages beyond the standard library, at most 200 names. Absent if not known. */
  readonly packages?: readonly string[];
  /**
   * How the code is separated from the host. `none`: it runs as the host's user; `wasm`: an interpreter compiled to
   * WebAssembly, without processes, threads or sockets, in a restricted process; `os-sandbox`: the operating system
   * restricts it; `container`: it shares only the host's kernel; `remote`: it runs on another machine.
   */
  readonly isolation: "none" | "wasm" | "os-sandbox" | "container" | "remote";
  /**
   * Which kernel answers the code's system calls, so a bug in which would let it out. `shared`: that of the machine which the
   * code runs on; `user-space`: a program in between, such as gVisor, or an interpreter in WebAssembly; `own`: one in a
   * virtual machine that is only for this code. Absent if not known, as of a service, or of a container before its start.
   */
  readonly kernel?: "shared" | "user-space" | "own";
}
