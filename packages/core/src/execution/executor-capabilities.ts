/** What an executor can do. Before `start()` what it is meant to do, after it what was found to be there. */
export interface ExecutorCapabilities {
  /** Canonical names of the languages it runs, e.g. `["python", "bash", "sh"]`. */
  readonly languages: readonly string[];
  /** Variables survive from block to block and from call to call. */
  readonly stateful: boolean;
  /** Blocks can show rich output (plots, tables) as `Display`s. */
  readonly displays: boolean;
  /** Languages in which user functions can be offered. */
  readonly functions: readonly string[];
  /** Languages whose programs can call functions of the host; see `hostFunction`. */
  readonly hostFunctions: readonly string[];
  /** Blocks can read `ExecuteOptions.stdin`. */
  readonly stdin: boolean;
  /**
   * What stands between the code and the host. `none`: it runs as the host's user; `wasm`: an interpreter compiled to WebAssembly,
   * without processes, threads and sockets, in a restricted process; `os-sandbox`: the operating
   * system restricts it; `container`: it shares the host's kernel only; `remote`: it runs on another machine.
   */
  readonly isolation: "none" | "wasm" | "os-sandbox" | "container" | "remote";
}
