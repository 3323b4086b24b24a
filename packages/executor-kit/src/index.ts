export { type Backend, type Opening, type Place, type PlaceEnd, type PlaceFacts, PlaceGone } from "./place.ts";
export { BaseCodeExecutor } from "./base-code-executor.ts";
export { CurrentPlace } from "./current-place.ts";
export {
  baseExecutorConfig,
  type BaseExecutorOptions,
  commandLineExecutorConfig,
  type CommandLineExecutorOptions,
} from "./base-executor-options.ts";
export {
  type CommandLineRequest,
  ForkableCodeExecutor,
  type ForkedExecutor,
  type ForkOptions,
} from "./forkable-code-executor.ts";
export { type KeepAliveOptions, keepAliveOptions, noKeepAlive, withoutCallbacks } from "./keep-alive-options.ts";
export { absolutePath, absolutePaths } from "./workspace/absolute-paths.ts";
export { type FileOwner, openRegularFile, PinnedDirectory } from "./workspace/pinned-directory.ts";
export {
  asWorkspaceError,
  directoryNotCreated,
  diskFull,
  errorCode,
  inTheWayOf,
  isDiskFull,
} from "./workspace/workspace-errors.ts";
export { modifiedAt } from "./workspace/modified-at.ts";
export { functionStub } from "./functions/format-functions.ts";
export type { FunctionPlaces } from "./functions/function-setup.ts";
export { functionVariables } from "./functions/function-variables.ts";
export { listenForCalls } from "./host-calls/call-server.ts";
export { functionsPackageMarker, renderJavaScriptModule, renderPythonModule } from "./functions/function-modules.ts";
export {
  blockEnvironment,
  blockSource,
  commandLineCapabilities,
  commandWithoutFile,
  runsFromAnywhere,
  defaultLanguages,
  findPlaceLanguages,
  hostEnvironment,
  hostFunctionLanguages,
  type LanguageCommand,
  type ProgramsPlace,
  programsPlace,
  languageTable,
  type PlaceInventory,
  type PlaceLanguages,
  programsOf,
  pythonPath,
} from "./languages/command-languages.ts";
export { OutputCollector, type StreamName } from "./output/output-collector.ts";
export { ControlGroup, inGroups } from "./processes/control-group.ts";
export { Heartbeat, type HeartbeatOptions } from "./processes/heartbeat.ts";
export { killProcesses, type ProcessFamily } from "./processes/kill-processes.ts";
export { HeldBytes } from "./processes/held-bytes.ts";
export { Leash, type LeashOptions } from "./processes/leash.ts";
export { removalFunctions } from "./processes/removal-functions.ts";
export { hasVariable, listProcesses, type ProcessInfo, processorTime } from "./processes/process-table.ts";
export { runChild, type ChildProgram } from "./processes/run-child.ts";
export {
  timeIsUp,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type ProgramControls,
  type ProgramRun,
} from "./run/block-run.ts";
export { feedProgram, isLiveInput } from "./processes/program-input.ts";
export type { WatchRequest } from "./supervisor/files/watch-directory.ts";
export { networkVariables } from "./supervisor/tunnels/session-network.ts";
export { OutputStreams } from "./run/output-streams.ts";
export { type OutputPiece, type Sink, writeAll } from "./run/sink.ts";
export { WriteAhead } from "./run/write-ahead.ts";
export { allFileFeatures, type BackendFiles, type ByteRange, type FileWriter } from "./workspace/backend-files.ts";
export { DirectoryFiles, type DirectoryFilesOptions } from "./workspace/directory-files.ts";
export { filenameDirective } from "./run/prepare-block.ts";
export {
  readOwnFile,
  removeOwnFile,
  SessionDirectories,
  type SessionOwner,
  writeOwnFile,
} from "./workspace/session-directories.ts";
export { pythonCandidates } from "./python-candidates.ts";
export { refusalRemedy } from "./workspace/refusal-remedy.ts";
export { removeTree } from "./workspace/walk-tree.ts";
export { RemoteFiles, type RemoteFileAccess } from "./workspace/remote-files.ts";
export { pathBytes, pathOfLatin1 } from "./workspace/path-bytes.ts";
export type { FileContent } from "./workspace/spool-file.ts";
export { normalizeWorkspacePath } from "./workspace/workspace-path.ts";
