export { codeExecutionTool } from "./code-execution-tool.ts";
export type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
export type {
  CodeExecutionFinished,
  CodeExecutionImage,
  CodeExecutionOutput,
  CodeExecutionRunning,
} from "./code-execution-output.ts";
