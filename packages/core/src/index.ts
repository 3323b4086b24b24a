// oxlint-disable-next-line import/no-unassigned-import -- has an effect, before any class is defined
import "./runtime/disposal.ts";
export type { ComponentModel } from "./components/component-model.ts";
export type { ComponentClass, ComponentContext, LoadComponentOptions } from "./components/component-class.ts";
export { componentModelSchema } from "./components/component-model-schema.ts";
export { type Component, type ComponentDefinition, defineComponent } from "./components/define-component.ts";
export { dumpComponentConfig, type DumpComponentConfigOptions } from "./components/dump-component-config.ts";
export { loadComponent } from "./components/load-component.ts";
export { parseComponentConfig } from "./components/parse-component-config.ts";

export { BackendUnavailableError } from "./errors/backend-unavailable-error.ts";
export { CheckpointError } from "./errors/checkpoint-error.ts";
export { ComponentError } from "./errors/component-error.ts";
export { ExecutorStoppedError } from "./errors/executor-stopped-error.ts";
export { FencedError, hasErrorCode, type FencedErrorOptions } from "./errors/fenced-error.ts";
export { FileNotFoundError } from "./errors/file-not-found-error.ts";
export { FunctionSetupError } from "./errors/function-setup-error.ts";
export { inOwnWords } from "./errors/in-own-words.ts";
export { InvalidInputError } from "./errors/invalid-input-error.ts";
export { ModelClientError } from "./errors/model-client-error.ts";
export { QuotaExceededError } from "./errors/quota-exceeded-error.ts";
export { RunNotFoundError } from "./errors/run-not-found-error.ts";
export { SessionInUseError } from "./errors/session-in-use-error.ts";
export { WorkspacePathError } from "./errors/workspace-path-error.ts";

export {
  type CheckpointDirectory,
  type CheckpointEntry,
  type CheckpointFile,
  type CheckpointIssue,
  type CheckpointLink,
  type CheckpointPart,
  checkpointPartBytes,
  type CheckpointVariable,
  type CheckpointVariables,
} from "./checkpoints/checkpoint-content.ts";
export type {
  CheckpointInfo,
  CheckpointOptions,
  CheckpointReceipt,
  CheckpointStore,
  CheckpointWriter,
  NewCheckpoint,
  RestoreOption,
  RestoreReceipt,
  SavedCheckpoint,
  SweepResult,
} from "./checkpoints/checkpoint-store.ts";

export { recordFile } from "./record/record-file.ts";
export type { RecordedBlock, RecordedHost, RecordedHostCall, RecordedRun, RunRecorder } from "./record/run-record.ts";
export { type InvalidRecord, type ValidRecord, verifyRecord } from "./record/verify-record.ts";

export { canonicalLanguage, languageAmong } from "./execution/canonical-language.ts";
export type { CodeBlock } from "./execution/code-block.ts";
export { codeBlockSchema } from "./execution/code-block-schema.ts";
export type { CodeExecutor, FunctionPromptOptions, StartOptions } from "./execution/code-executor.ts";
export type { BlockResult, CodeResult } from "./execution/code-result.ts";
export type { FileChanges, RiskyFile, WorkspaceChanges } from "./execution/workspace-changes.ts";
export {
  codeResultForModel,
  type ModelOutput,
  type ModelOutputLimits,
  shortenMiddle,
} from "./execution/code-result-for-model.ts";
export { describeCodeExecutor } from "./execution/describe-code-executor.ts";
export { describeCodeResult, savedFileNames } from "./execution/describe-code-result.ts";
export { connectExecutor, type ConnectExecutorOptions } from "./execution/connect-executor.ts";
export type { Display, MimeBundle } from "./execution/display.ts";
export { displayImage, type DisplayImage } from "./execution/display-image.ts";
export type { ExecuteOptions } from "./execution/execute-options.ts";
export {
  executeWithProgress,
  type FollowOptions,
  followRun,
  type ProgressOptions,
  type ProgressReports,
} from "./execution/execute-with-progress.ts";
export type { ExecutionEvent, HostCallEnd, HostCallEvent, HostCallStart } from "./execution/execution-event.ts";
export type { ExecutorUsage } from "./execution/executor-usage.ts";
export { processesOf } from "./execution/processes-of.ts";
export type { RunUsage, RunUsageFigure } from "./execution/run-usage.ts";
export type { ExecutorCapabilities, FileFeature } from "./execution/executor-capabilities.ts";
export {
  type ConnectedProcess,
  type ExecutorProcesses,
  type ListedProcess,
  type ProcessExit,
  type ProcessOptions,
  type ProcessSignal,
  processSignals,
  type RunningProcess,
  type TerminalProcess,
  type TerminalSize,
  type WritableProcess,
} from "./execution/executor-processes.ts";
export { capabilitiesUnknown, knownCapabilities } from "./execution/known-capabilities.ts";
export {
  type BlockResultFields,
  type CodeResultFields,
  type CompactBlockResult,
  type CompactCodeResult,
  compactCodeResult,
  cutLine,
  expandCodeResult,
  makeBlockResult,
  makeCodeResult,
  type OutputLayout,
} from "./execution/make-code-result.ts";
export type { SessionCallbacks, SessionHandle, SessionToConnect } from "./execution/session-handle.ts";
export type {
  ArchiveOptions,
  ExtractOptions,
  ExtractReceipt,
  FileEntry,
  FileEvent,
  FileInfo,
  FileStat,
  ListOptions,
  ReadStreamOptions,
  StatOptions,
  WatchOptions,
  WorkspaceFiles,
  WriteOptions,
} from "./execution/workspace-files.ts";

export { Alias } from "./functions/alias.ts";
export { isJavaScriptIdentifier, isPythonIdentifier } from "./functions/names.ts";
export type { FunctionLanguage } from "./functions/function-language.ts";
export type { FunctionRequirements } from "./functions/function-requirements.ts";
export { FunctionWithRequirements, type JavaScriptFunction } from "./functions/function-with-requirements.ts";
export type { GlobalImport } from "./functions/global-import.ts";
export type {
  ApproveHostCall,
  HostCall,
  HostCallApproval,
  HostCallContext,
  HostCallError,
  NeedsApproval,
} from "./functions/host/host-call.ts";
export { describeHostCall, describeHostInput } from "./functions/host/describe-host-call.ts";
export { compileJsonSchema, type SchemaUse } from "./functions/host/json-schema.ts";
export { type HostFunction, isHostFunction } from "./functions/host/host-function.ts";
export { hostFunction, type HostFunctionDefinition } from "./functions/host/make-host-function.ts";
export {
  type AiSdkTool,
  hostFunctionsFrom,
  type HostFunctionsFromOptions,
  toFunctionName,
} from "./functions/host/host-functions-from.ts";
export type {
  CheckedValue,
  JsonSchema,
  SchemaIssue,
  SchemaResult,
  StandardSchema,
} from "./functions/host/standard-schema.ts";
export { ImportFromModule } from "./functions/import-from-module.ts";
export { withRequirements } from "./functions/with-requirements.ts";

export { BoundedOutput } from "./bounded-output.ts";
export { ByteQueue } from "./byte-queue.ts";
export { isJsonValue, type JsonObject, type JsonValue, maxJsonDepth } from "./json-value.ts";
export { JsonLimitError, type JsonLimits, maxJsonValues, measureJson, parseJson } from "./parse-json.ts";
export { extractCodeBlocks, type Fence, findFences } from "./markdown/extract-code-blocks.ts";

export type {
  ChatCompletionClient,
  CreateOptions,
  CreateResult,
  FinishReason,
  ModelInfo,
  ModelUsage,
  ToolSchema,
} from "./models/chat-completion-client.ts";
export { imageFromBytes } from "./models/image-from-bytes.ts";
export type {
  AssistantMessage,
  ImageContent,
  ModelMessage,
  SystemMessage,
  TextContent,
  ToolCall,
  ToolResult,
  ToolResultMessage,
  UserMessage,
} from "./models/model-messages.ts";

export type {
  CredentialSource,
  HeaderCredential,
  NetworkCredential,
  PlaceholderCredential,
  PlaceholderPart,
} from "./network/network-credential.ts";
export type { UpstreamProxy } from "./network/upstream-proxy.ts";
export {
  type AllowedNetwork,
  type NetworkDecision,
  type NetworkPolicy,
  type NetworkDenial,
  type NetworkRule,
  packageIndexes,
  type UnknownHost,
} from "./network/network-policy.ts";

export type { RunEvent, RunEventsOptions, RunGap, SubmitOptions, SubmittedRun } from "./runs/submitted-run.ts";
export {
  SubmittedRuns,
  type BeginningRun,
  type LeftRun,
  type RunIdentity,
  type RunningSubmission,
  type SubmittedRunsSettings,
} from "./runs/submitted-runs.ts";

export { sanitizeTerminalText } from "./text/sanitize-terminal-text.ts";
export { terminalLines } from "./text/terminal-lines.ts";
export { showHidden } from "./text/show-hidden.ts";
export { wellFormed } from "./text/well-formed.ts";
