export { BaseCodeExecutor } from "./base-code-executor.ts";
export { baseExecutorConfig, commandLineExecutorConfig } from "./base-executor-config.ts";
export type { BaseExecutorOptions } from "./base-executor-options.ts";
export { errorCode } from "./error-code.ts";
export { formatFunctions, functionStub } from "./functions/format-functions.ts";
export type { FunctionPlaces } from "./functions/function-setup.ts";
export { renderJavaScriptModule } from "./functions/javascript-module.ts";
export { functionsPackageMarker } from "./functions/javascript-setup-program.ts";
export { renderPythonModule } from "./functions/python-module.ts";
export { blockEnvironment } from "./languages/block-environment.ts";
export { blockSource } from "./languages/block-source.ts";
export { defaultLanguages, languageTable } from "./languages/default-languages.ts";
export { hostEnvironment } from "./languages/host-environment.ts";
export type { LanguageCommand } from "./languages/language-command.ts";
export {
  findPlaceLanguages,
  programsOf,
  type PlaceInventory,
  type PlaceLanguages,
} from "./languages/place-languages.ts";
export { pythonPath } from "./languages/python-path.ts";
export type { StreamName } from "./output/arrival-order.ts";
export { OutputCollector } from "./output/output-collector.ts";
export { killProcesses, type ProcessFamily } from "./processes/kill-processes.ts";
export { Leash, type LeashOptions } from "./processes/leash.ts";
export { hasVariable, listProcesses, type ProcessInfo } from "./processes/process-table.ts";
export { runChild, type ChildProgram } from "./processes/run-child.ts";
export { timeIsUp, type BlockEvent, type BlockOutcome, type BlockRun } from "./run/block-run.ts";
export { OutputQueue } from "./run/output-queue.ts";
export { DirectoryFiles } from "./workspace/directory-files.ts";
export { asWorkspaceError, type FileOwner } from "./workspace/directory-handle.ts";
export { filenameDirective } from "./workspace/filename-directive.ts";
export { RemoteFiles, type RemoteFileAccess } from "./workspace/remote-files.ts";
export { normalizeWorkspacePath } from "./workspace/workspace-path.ts";
