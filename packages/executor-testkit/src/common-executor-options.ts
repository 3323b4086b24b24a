import type { FunctionWithRequirements } from "@fenced/core";

/**
 * The options that every executor has, under these names. The suite makes its executors with them.
 */
export interface CommonExecutorOptions {
  /** Milliseconds that a block may take. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /** The workspace, a directory of the host. Only passed if the subject says that it `takesWorkDir`. */
  readonly workDir?: string;
  /** Functions that blocks can import. */
  readonly functions?: readonly FunctionWithRequirements[];
  /** The name of the module that blocks import them from. Default: `functions`. */
  readonly functionsModule?: string;
  /** Environment variables for all blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /** Bytes of output that are kept of a block. Default: 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Whether the executor removes its own temporary files from the workspace. Default: true. */
  readonly cleanupTempFiles?: boolean;
}
