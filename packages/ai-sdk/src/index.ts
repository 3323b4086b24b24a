export { codeExecutionTool } from "./code-execution-tool.ts";
export type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
export type {
  CodeExecutionFinished,
  CodeExecutionImage,
  CodeExecutionOutput,
  CodeExecutionRunning,
  WaitingCall,
} from "./code-execution-output.ts";
export { sandboxSession, type SandboxSessionOptions } from "./sandbox/sandbox-session.ts";
export type {
  ExecutorSandboxSession,
  SandboxCommand,
  SandboxContent,
  SandboxDirectoryEntry,
  SandboxFileStat,
  SandboxPath,
  SandboxProcess,
  WritableSandboxProcess,
  SandboxTextPath,
} from "./sandbox/sandbox-types.ts";
export {
  fileTools,
  type FileTools,
  type FileToolsOptions,
  type ListFilesOutput,
  type ReadFileInput,
  type ReadFileOutput,
  type WriteFileInput,
} from "./files/file-tools.ts";
export { harnessSandbox, type HarnessExecutorRequest, type HarnessSandboxOptions } from "./harness/harness-sandbox.ts";
export type {
  HarnessNetworkPolicy,
  HarnessPort,
  HarnessSandboxProvider,
  HarnessSandboxSession,
  HarnessSessionRequest,
} from "./harness/harness-types.ts";
