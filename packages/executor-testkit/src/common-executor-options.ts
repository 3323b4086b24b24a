import type { ApproveHostCall, FunctionWithRequirements, HostFunction } from "@fenced/core";

/**
 * The options that every executor has, under these names. The suite makes its executors with them.
 */
export interface CommonExecutorOptions {
  /** Milliseconds that a block may take. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /** Milliseconds that a whole call may take. Default: no limit. */
  readonly totalTimeoutMs?: number;
  /** Bytes of disk space that the files in the workspace may take. Default: no limit. */
  readonly maxWorkspaceBytes?: number;
  /** Called when what earlier calls left in the session is gone. */
  readonly onSessionLost?: (reason: string) => void;
  /** The workspace, a directory of the host. Only passed if the subject says that it `takesWorkDir`. */
  readonly workDir?: string;
  /** Functions that blocks can import. Those of the host only where `capabilities.hostFunctions` names languages. */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[];
  /** Asked before each call of a host function. Default: all are approved. */
  readonly approveHostCall?: ApproveHostCall;
  /** Calls of host functions that a block may make. Default: 256. */
  readonly maxHostCalls?: number;
  /** The name of the module that blocks import them from. Default: `functions`. */
  readonly functionsModule?: string;
  /** Environment variables for all blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /** Bytes of output that are kept of a call. Default: 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Whether the executor removes its own temporary files from the workspace. Default: true. */
  readonly cleanupTempFiles?: boolean;
}
