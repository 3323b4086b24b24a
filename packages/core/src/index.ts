export type { ComponentModel } from "./components/component-model.ts";
export type { ComponentClass, ComponentContext, LoadComponentOptions } from "./components/component-class.ts";
export { componentModelSchema } from "./components/component-model-schema.ts";
export { dumpComponentConfig, type DumpComponentConfigOptions } from "./components/dump-component-config.ts";
export { loadComponent } from "./components/load-component.ts";
export { parseComponentConfig } from "./components/parse-component-config.ts";

export { BackendUnavailableError } from "./errors/backend-unavailable-error.ts";
export { ComponentError } from "./errors/component-error.ts";
export { ExecutorStoppedError } from "./errors/executor-stopped-error.ts";
export { FencedError, hasErrorMarker, type FencedErrorOptions } from "./errors/fenced-error.ts";
export { FileNotFoundError } from "./errors/file-not-found-error.ts";
export { FunctionSetupError } from "./errors/function-setup-error.ts";
export { InvalidInputError } from "./errors/invalid-input-error.ts";
export { ModelClientError } from "./errors/model-client-error.ts";
export { WorkspacePathError } from "./errors/workspace-path-error.ts";

export { canonicalLanguage } from "./execution/canonical-language.ts";
export type { CodeBlock } from "./execution/code-block.ts";
export { codeBlockSchema } from "./execution/code-block-schema.ts";
export type { CodeExecutor } from "./execution/code-executor.ts";
export type { BlockResult, CodeResult } from "./execution/code-result.ts";
export { codeResultForModel, type ModelOutput, type ModelOutputLimits } from "./execution/code-result-for-model.ts";
export { describeCodeExecutor } from "./execution/describe-code-executor.ts";
export { describeCodeResult } from "./execution/describe-code-result.ts";
export type { Display, MimeBundle } from "./execution/display.ts";
export { displayImage, type DisplayImage } from "./execution/display-image.ts";
export type { ExecuteOptions } from "./execution/execute-options.ts";
export { executeWithProgress, lastCharacters, type ProgressOptions } from "./execution/execute-with-progress.ts";
export type { ExecutionEvent } from "./execution/execution-event.ts";
export type { ExecutorCapabilities } from "./execution/executor-capabilities.ts";
export type { FileInfo, WorkspaceFiles } from "./execution/workspace-files.ts";

export { Alias } from "./functions/alias.ts";
export { assertFunctionSet } from "./functions/assert-function-set.ts";
export type { FunctionLanguage } from "./functions/function-language.ts";
export type { FunctionRequirements } from "./functions/function-requirements.ts";
export { FunctionWithRequirements, type JavaScriptFunction } from "./functions/function-with-requirements.ts";
export type { GlobalImport } from "./functions/global-import.ts";
export { ImportFromModule } from "./functions/import-from-module.ts";
export { isJavaScriptIdentifier } from "./functions/is-javascript-identifier.ts";
export { isPythonIdentifier } from "./functions/is-python-identifier.ts";
export { withRequirements } from "./functions/with-requirements.ts";

export type { JsonObject, JsonValue } from "./json-value.ts";
export { extractCodeBlocks } from "./markdown/extract-code-blocks.ts";

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
