import type {
  ApproveHostCall,
  FunctionWithRequirements,
  HostFunction,
  NetworkPolicy,
  RestoreOption,
} from "@fenced/core";

/** The options that every executor has, under these names. The suite creates its executors with them. */
export interface CommonExecutorOptions {
  /** Time limit for each block in milliseconds. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /** Time limit for a whole call in milliseconds. Default: no limit. */
  readonly totalTimeoutMs?: number;
  /** Limit on the disk space of the workspace's files in bytes. Default: no limit. */
  readonly maxWorkspaceBytes?: number;
  /** Called when what earlier calls left in the session is gone. */
  readonly onSessionLost?: (reason: string) => void;
  /** The workspace, a directory of the host. Only passed if the subject has `takesWorkDir`. */
  readonly workDir?: string;
  /** Functions that blocks can import. Host functions only where `capabilities.hostFunctions` names languages. */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[];
  /** Asked before each call of a host function. Default: all calls are approved. */
  readonly approveHostCall?: ApproveHostCall;
  /** Maximum number of host function calls per block. Default: 256. */
  readonly maxHostCalls?: number;
  /** The name of the module from which blocks import them. Default: `functions`. */
  readonly functionsModule?: string;
  /** What the code may connect to. Only passed if the subject has `takesNetworkPolicy`. */
  readonly network?: NetworkPolicy;
  /** How long a session waits for a program. Only passed if the subject has `connect`. Default: it ends with its program. */
  readonly keepAliveMs?: number;
  /** The checkpoint that the executor starts with. */
  readonly restore?: RestoreOption;
  /** Say in each result what the run changed in the workspace. */
  readonly changes?: boolean;
  /** Environment variables for all blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /** Bytes of output that a call keeps. Default: 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Whether the executor removes its own temporary files from the workspace. Default: true. */
  readonly cleanupTempFiles?: boolean;
}
